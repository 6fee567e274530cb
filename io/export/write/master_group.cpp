#include "io/export/write/master_group.h"

#include <numeric>
#include <vector>

#include "io/export/write/export_attributes.h"
#include "io/export/write/export_coordinates.h"
#include "io/export/write/kept_weights.h"

namespace attnscope {
namespace {

class MasterGroup {
 public:
  MasterGroup(const Hdf5Writer& writer, hid_t calls, const ExportSpec& spec,
              const ExportLayout& layout, const ExportGroup& group,
              std::span<const MasterSource> sources)
      : writer_(writer),
        spec_(spec),
        layout_(layout),
        group_(group),
        sources_(sources),
        own_(writer.create_group(calls, group.name)) {
    write_group_attributes(writer, own_.id(), spec, group);
    write_part_call(writer, own_.id(), spec, group);
    scales_ = write_coordinates(writer, own_.id(), layout, group, false);
  }

  void write(std::span<const int64_t> kept) const {
    if (spec_.product == ExportProduct::topk) return write_largest();
    if (spec_.product == ExportProduct::threshold) return write_lists(kept);
    if (layout_.has_entries()) write_entries();
    if (group_.has_lse) write_lse();
  }

 private:
  /// Of a dataset (batch, head, …): the heads of each source.
  Hdf5Dataset create(const std::string& name, hid_t type, const std::vector<int64_t>& shape) const {
    std::vector<Hdf5Elsewhere> pieces;
    for (const MasterSource& source : sources_) {
      std::vector<int64_t> begin(shape.size(), 0), count = shape;
      begin[1] = source.first_head;
      count[1] = source.heads;
      pieces.push_back(
          {source.file, "/calls/" + group_.name + "/" + name, std::move(begin), count, count});
    }
    return writer_.create_virtual(own_.id(), name, type, shape, pieces);
  }

  void write_entries() const {
    const bool outputs = layout_.request.outputs;
    const Hdf5Dataset entries =
        create(layout_.entries_name, entry_type(writer_, layout_.request.encoding),
               {items(), heads(), group_.grid.rows, group_.grid.cols});
    describe_entries(writer_, entries, layout_);
    const Hdf5Dataset* const axes[] = {&scales_.batch, &scales_.head, &scales_.query,
                                       outputs ? &scales_.channel : &scales_.key};
    writer_.attach_scales(entries, axes);
  }

  void write_lse() const {
    const Hdf5Dataset lse =
        create("lse", Hdf5Writer::file_type<float>(), {items(), heads(), group_.grid.rows});
    describe_lse(writer_, lse, group_);
    const Hdf5Dataset* const axes[] = {&scales_.batch, &scales_.head, &scales_.query};
    writer_.attach_scales(lse, axes);
  }

  void write_largest() const {
    const int64_t keys = spec_.kept_largest().keys;
    const Hdf5Dataset ranks = write_ranks(writer_, own_.id(), keys);
    for (const LargestDataset& d : largest_datasets()) {
      const Hdf5Dataset made = create(d.name, d.type, shape_of(d, group_, keys));
      describe_largest(writer_, made, d, scales_, ranks);
    }
  }

  void write_lists(std::span<const int64_t> kept) const {
    const std::string& file = sources_.front().file;
    const std::vector<std::string> names = list_names(group_);
    for (size_t i = 0; i < names.size(); ++i) {
      const Hdf5Group list = writer_.create_group(own_.id(), names[i]);
      const ListAxes axes(writer_, list.id(), scales_.query, group_.num_rows(), kept[i]);
      for (const ListDataset& d : list_datasets()) {
        const std::vector<int64_t> shape{axes.extent(d)};
        std::vector<Hdf5Elsewhere> whole;
        // The library makes no virtual dataset of nothing.
        if (shape[0] > 0) {
          whole.push_back(
              {file, "/calls/" + group_.name + "/" + names[i] + "/" + d.name, {0}, shape, shape});
        }
        axes.describe(writer_.create_virtual(list.id(), d.name, d.type, shape, whole), d);
      }
    }
    write_kept_mass(writer_, own_.id(), group_, scales_, file);
  }

  int64_t items() const { return std::ssize(group_.batch); }
  int64_t heads() const { return std::ssize(group_.heads); }

  const Hdf5Writer& writer_;
  const ExportSpec& spec_;
  const ExportLayout& layout_;
  const ExportGroup& group_;
  const std::span<const MasterSource> sources_;
  const Hdf5Group own_;
  ExportScales scales_;
};

}  // namespace

void write_linked_files(const Hdf5Writer& writer, const std::string& list, const std::string& axis,
                        std::span<const LinkedPart> files, const std::string& algorithm) {
  const Hdf5Group group = writer.create_group(writer.root(), list);
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  std::vector<uint64_t> sums;
  for (const LinkedPart& file : files) {
    names.push_back(file.file);
    sizes.push_back(file.bytes);
    sums.push_back(file.digest);
  }
  std::vector<int32_t> places(names.size());
  std::iota(places.begin(), places.end(), 0);
  const Hdf5Dataset scale = write_scale(writer, group.id(), axis, places, "place in the list");
  const Hdf5Dataset* const axes[] = {&scale};
  const auto count = std::ssize(places);
  const std::span<const int64_t> shape(&count, 1);
  writer.attach_scales(writer.write_strings(group.id(), "file", names, shape), axes);
  writer.attach_scales(
      writer.write<int64_t>(group.id(), "bytes", std::span<const int64_t>(sizes), shape), axes);
  const Hdf5Dataset checksum =
      writer.write<uint64_t>(group.id(), "checksum", std::span<const uint64_t>(sums), shape);
  writer.attribute(checksum.id(), "algorithm", algorithm);
  writer.attach_scales(checksum, axes);
}

void write_master_group(const Hdf5Writer& writer, hid_t calls, const ExportSpec& spec,
                        const ExportLayout& layout, const ExportGroup& group,
                        std::span<const MasterSource> sources, std::span<const int64_t> kept) {
  MasterGroup(writer, calls, spec, layout, group, sources).write(kept);
}

}  // namespace attnscope
