#include "io/export/write/call_index.h"

#include <numeric>
#include <string>
#include <vector>

#include "io/export/format/describe_group.h"
#include "io/export/write/export_coordinates.h"

namespace attnscope {

void write_call_index(const Hdf5Writer& writer, std::span<const ExportGroup> groups) {
  std::vector<int64_t> steps, layers;
  std::vector<std::string> branches, blocks, slots, names;
  Unrecorded all;
  for (const ExportGroup& group : groups) {
    const HeadName name = describe_call(group, "").name;
    const Unrecorded& own = name.place.unrecorded;
    steps.push_back(own.step ? kNotRecorded : name.step);
    layers.push_back(own.layer ? kNotRecorded : name.layer);
    branches.push_back(own.branch ? "" : name.branch);
    blocks.push_back(name.place.block);
    slots.push_back(name.place.slot);
    names.push_back(group.name);
    all.step |= own.step;
    all.layer |= own.layer;
    all.branch |= own.branch;
  }
  const Hdf5Group index = writer.create_group(writer.root(), "call_index");
  const std::string unrecorded = all.text();
  if (!unrecorded.empty()) writer.attribute(index.id(), kNotRecordedName, unrecorded);
  std::vector<int32_t> places(groups.size());
  std::iota(places.begin(), places.end(), 0);
  const Hdf5Dataset call = write_scale(writer, index.id(), "call", places, "place in the index");
  const Hdf5Dataset* const axes[] = {&call};
  const auto count = std::ssize(places);
  const std::span<const int64_t> shape(&count, 1);
  const auto describe = [&](const Hdf5Dataset& dataset, const char* meaning) {
    writer.attribute(dataset.id(), "long_name", meaning);
    writer.attach_scales(dataset, axes);
  };
  const auto strings = [&](const char* name, const std::vector<std::string>& values,
                           const char* meaning) {
    describe(writer.write_strings(index.id(), name, values, shape), meaning);
  };
  describe(writer.write<int64_t>(index.id(), "step", std::span<const int64_t>(steps), shape),
           "denoising step");
  describe(writer.write<int64_t>(index.id(), "layer", std::span<const int64_t>(layers), shape),
           "layer of the model's main stack, -1 outside it");
  strings("branch", branches, "branch of guidance");
  strings("block", blocks, "block of the model");
  strings("slot", slots, "attention within the block");
  strings("group", names, "group in /calls");
}

}  // namespace attnscope
