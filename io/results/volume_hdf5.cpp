#include "io/results/volume_hdf5.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "io/export/format/export_part_json.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/results/volume_check.h"

namespace attnscope {
namespace {

/// Writes the datasets of one file; each has a dimension scale an axis.
class VolumeWriter {
 public:
  VolumeWriter(const QueryVolumes& volumes, const VolumePart* part,
               const std::filesystem::path& path)
      : volumes_(volumes), part_(part), writer_(path) {}

  void write() {
    write_attributes();
    if (count() > 0) {
      const Hdf5Dataset item = write_scale("item", count(), "volume: a head of a call");
      write_facts(item);
      write_chosen(item);
      if (volumes_.grid[0] > 0) write_video(item);
      if (text_length() > 0) write_text(item);
      for (size_t part = 0; part < volumes_.volumes.front().others.size(); ++part) {
        write_segment(item, part);
      }
    }
    writer_.close();
  }

 private:
  int64_t count() const { return static_cast<int64_t>(volumes_.volumes.size()); }
  int64_t text_length() const { return static_cast<int64_t>(volumes_.volumes.front().text.size()); }

  void write_attributes() {
    const hid_t root = writer_.root();
    writer_.attribute(root, "format", "attnscope-volumes/1");
    writer_.attribute(root, "model", volumes_.model);
    writer_.attribute(root, "capture", volumes_.capture);
    writer_.attribute(root, "query", volumes_.query_text);
    writer_.attribute(root, "domain", volumes_.domain);
    writer_.attribute(root, "reverse", static_cast<int32_t>(volumes_.reverse));
    writer_.attribute(root, "weighting", volumes_.weighting);
    writer_.attribute(root, "mean", volumes_.mean);
    writer_.attribute(root, "Conventions", "CF-1.8");
    const std::string names = volumes_.not_recorded();
    if (!names.empty()) writer_.attribute(root, kNotRecordedName, names);
    if (part_ == nullptr) return;
    const OrderedJson json = part_json(part_->plan);
    writer_.attribute(root, "shard", json["shard"].get<std::string>());
    writer_.attribute(root, "plan_hash", json["plan_hash"].get<std::string>());
    writer_.attribute(root, "part", json["part"].dump());
    writer_.attribute(root, "backend", count() > 0 ? part_->backend : "");
  }

  Hdf5Dataset write_scale(const std::string& name, int64_t extent, const char* long_name) {
    std::vector<int32_t> indices(static_cast<size_t>(extent));
    std::iota(indices.begin(), indices.end(), 0);
    Hdf5Dataset scale = writer_.write<int32_t>(writer_.root(), name, indices, {&extent, 1});
    writer_.make_scale(scale, name, extent);
    writer_.attribute(scale.id(), "long_name", long_name);
    return scale;
  }

  template <typename T>
  void write_number(const Hdf5Dataset& item, const std::string& name,
                    const std::function<T(const QueryVolume&)>& value) {
    std::vector<T> values;
    for (const QueryVolume& volume : volumes_.volumes) values.push_back(value(volume));
    const int64_t extent = count();
    const Hdf5Dataset dataset =
        writer_.write<T>(writer_.root(), name, std::span(values), {&extent, 1});
    const Hdf5Dataset* const scales[] = {&item};
    writer_.attach_scales(dataset, scales);
  }

  void write_string(const Hdf5Dataset& item, const std::string& name,
                    const std::function<std::string(const QueryVolume&)>& value) {
    std::vector<std::string> values;
    for (const QueryVolume& volume : volumes_.volumes) values.push_back(value(volume));
    const int64_t extent = count();
    const Hdf5Dataset dataset = writer_.write_strings(writer_.root(), name, values, {&extent, 1});
    const Hdf5Dataset* const scales[] = {&item};
    writer_.attach_scales(dataset, scales);
  }

  void write_facts(const Hdf5Dataset& item) {
    using V = const QueryVolume&;
    write_number<int64_t>(item, "step",
                          [](V v) { return v.place.unrecorded.step ? kNotRecorded : v.step; });
    write_number<int64_t>(item, "layer",
                          [](V v) { return v.place.unrecorded.layer ? kNotRecorded : v.layer; });
    write_number<int32_t>(item, "batch", [](V v) { return static_cast<int32_t>(v.batch); });
    write_number<int32_t>(item, "head", [](V v) { return static_cast<int32_t>(v.head); });
    write_number<int64_t>(item, "averaged", [](V v) { return v.averaged; });
    write_string(item, "branch",
                 [](V v) { return v.place.unrecorded.branch ? std::string() : v.branch; });
    write_string(item, "kind", [](V v) { return v.kind; });
    write_string(item, "label", [](V v) { return v.label; });
    if (std::any_of(volumes_.volumes.begin(), volumes_.volumes.end(),
                    [](V v) { return v.place.is_recorded(); })) {
      write_string(item, "block", [](V v) { return v.place.block; });
      write_string(item, "slot", [](V v) { return v.place.slot; });
    }
    if (std::any_of(volumes_.volumes.begin(), volumes_.volumes.end(),
                    [](V v) { return v.place.has_chunk(); })) {
      write_number<int64_t>(item, "chunk", [](V v) { return v.place.chunk; });
    }
    for (const ForwardFact& fact : kForwardFacts) {
      if (std::any_of(volumes_.volumes.begin(), volumes_.volumes.end(),
                      [&](V v) { return v.place.forward.*fact.number != fact.none; })) {
        write_number<int64_t>(item, fact.name, [&](V v) { return v.place.forward.*fact.number; });
      }
    }
    // −1: the query is no single place of this grid.
    for (size_t axis = 0; axis < 3; ++axis) {
      write_number<int32_t>(item, std::string("query_") + "tyx"[axis], [axis](V v) {
        return v.query ? static_cast<int32_t>((*v.query)[axis]) : -1;
      });
    }
  }

  /// `tokens` [chosen], or [item, chosen] where the volumes are of different ones.
  void write_chosen(const Hdf5Dataset& item) {
    size_t length = 0;
    for (const QueryVolume& volume : volumes_.volumes) {
      length = std::max(length, volumes_.chosen_of(volume).size());
    }
    if (length == 0) return;
    const Hdf5Dataset scale =
        write_scale("chosen", static_cast<int64_t>(length), "place among the chosen tokens");
    std::vector<int32_t> tokens;
    std::vector<int64_t> shape{static_cast<int64_t>(length)};
    std::vector<const Hdf5Dataset*> scales{&scale};
    const bool alike = volumes_.chosen_alike();
    for (const QueryVolume& volume : volumes_.volumes) {
      const std::vector<int64_t>& own = volumes_.chosen_of(volume);
      tokens.insert(tokens.end(), own.begin(), own.end());
      if (alike) break;
      tokens.resize(tokens.size() + length - own.size(), -1);
    }
    if (!alike) {
      shape.insert(shape.begin(), count());
      scales.insert(scales.begin(), &item);
    }
    const Hdf5Dataset dataset =
        writer_.write<int32_t>(writer_.root(), "tokens", std::span(tokens), shape);
    writer_.attribute(dataset.id(), "long_name",
                      "tokens of the sequence that the volume is the mean of (-1: none)");
    writer_.attach_scales(dataset, scales);
  }

  /// Values of all volumes, written one after another.
  void write_weights(const std::string& name, std::vector<float> QueryVolume::*member,
                     const std::vector<int64_t>& shape, const char* long_name,
                     std::span<const Hdf5Dataset* const> scales) {
    const Hdf5Dataset dataset = writer_.create_dataset(
        writer_.root(), name, Hdf5Writer::file_type<float>(), shape, Hdf5Storage::contiguous);
    int64_t item = 0;
    for (const QueryVolume& volume : volumes_.volumes) {
      writer_.write_item<float>(dataset, item++, std::span(volume.*member), shape, name);
    }
    writer_.attribute(dataset.id(), "long_name", long_name);
    writer_.attribute(dataset.id(), "units", "1");
    writer_.attribute(dataset.id(), "coordinates",
                      "step layer batch head branch kind label query_t query_y query_x");
    writer_.attach_scales(dataset, scales);
  }

  void write_video(const Hdf5Dataset& item) {
    const auto& [frames, height, width] = volumes_.grid;
    const Hdf5Dataset t = write_scale("t", frames, "latent frame");
    const Hdf5Dataset y = write_scale("y", height, "latent row");
    const Hdf5Dataset x = write_scale("x", width, "latent column");
    const Hdf5Dataset* const scales[] = {&item, &t, &y, &x};
    write_weights("volume", &QueryVolume::video, {count(), frames, height, width},
                  volumes_.reverse ? "attention weight of the video queries on the chosen keys"
                                   : "attention weight of the video keys",
                  scales);
  }

  void write_text(const Hdf5Dataset& item) {
    const int64_t length = text_length();
    const Hdf5Dataset index = write_scale("text_index", length, "place within the text");
    const Hdf5Dataset* const scales[] = {&item, &index};
    write_weights("text", &QueryVolume::text, {count(), length},
                  volumes_.reverse ? "attention weight of the text queries on the chosen keys"
                                   : "attention weight of the text keys",
                  scales);
    write_tokens(item, index, length);
  }

  /// segment_NAME (item, NAME_index): what a token map has beside video and text.
  void write_segment(const Hdf5Dataset& item, size_t part) {
    const SegmentValues& first = volumes_.volumes.front().others[part];
    const auto length = static_cast<int64_t>(first.values.size());
    const Hdf5Dataset index =
        write_scale(first.name + "_index", length, "place within the segment");
    const std::vector<int64_t> shape{count(), length};
    const std::string name = "segment_" + first.name;
    const Hdf5Dataset dataset = writer_.create_dataset(
        writer_.root(), name, Hdf5Writer::file_type<float>(), shape, Hdf5Storage::contiguous);
    int64_t number = 0;
    for (const QueryVolume& volume : volumes_.volumes) {
      writer_.write_item<float>(dataset, number++, std::span(volume.others[part].values), shape,
                                name);
    }
    writer_.attribute(dataset.id(), "long_name", "attention weight of a segment of the token map");
    writer_.attribute(dataset.id(), "units", "1");
    const Hdf5Dataset* const scales[] = {&item, &index};
    writer_.attach_scales(dataset, scales);
  }

  /// [text_index], or [item, text_index] where the volumes' prompts differ.
  void write_tokens(const Hdf5Dataset& item, const Hdf5Dataset& index, int64_t length) {
    const QueryVolume& first = volumes_.volumes.front();
    const bool alike = std::all_of(volumes_.volumes.begin(), volumes_.volumes.end(),
                                   [&](const QueryVolume& volume) {
                                     return volumes_.tokens_of(volume) == volumes_.tokens_of(first);
                                   });
    std::vector<std::string> strings;
    bool any = false;
    for (const QueryVolume& volume : volumes_.volumes) {
      std::vector<std::string> tokens = volumes_.tokens_of(volume);
      any |= !tokens.empty();
      tokens.resize(static_cast<size_t>(length));
      strings.insert(strings.end(), tokens.begin(), tokens.end());
      if (alike) break;
    }
    if (!any) return;
    std::vector<int64_t> shape{length};
    std::vector<const Hdf5Dataset*> scales{&index};
    if (!alike) {
      shape.insert(shape.begin(), count());
      scales.insert(scales.begin(), &item);
    }
    const Hdf5Dataset dataset =
        writer_.write_strings(writer_.root(), "text_tokens", strings, shape);
    writer_.attach_scales(dataset, scales);
  }

  const QueryVolumes& volumes_;
  const VolumePart* const part_;
  Hdf5Writer writer_;
};

}  // namespace

namespace {

void write_file(const QueryVolumes& volumes, const VolumePart* part,
                const std::filesystem::path& path, bool force) {
  StagedFile file(path, force);
  {
    const Hdf5Session session;
    VolumeWriter(volumes, part, file.part_path()).write();
  }
  file.commit();
}

}  // namespace

void write_volumes_hdf5(const QueryVolumes& volumes, const std::filesystem::path& path,
                        bool force) {
  check_volumes(volumes, false);
  write_file(volumes, nullptr, path, force);
}

void write_volume_part(const QueryVolumes& volumes, const VolumePart& part,
                       const std::filesystem::path& path, bool force) {
  if (!volumes.volumes.empty()) check_volumes(volumes, false);
  write_file(volumes, &part, path, force);
}

}  // namespace attnscope
