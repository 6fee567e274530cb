#include "io/plan_parts/link_maps.h"

#include <string>

#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_coordinates.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/output_file.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

namespace fs = std::filesystem;

void check_linkable(const MergedExport& whole, const fs::path& out) {
  for (const auto& part : whole.parts) {
    std::error_code error;
    if (!fs::equivalent(folder_of(part->path()), folder_of(out), error)) {
      throw usage_error("-o " + out.string() + ": a master links parts that stand beside it, and " +
                        one_line(part->path().string()) +
                        " stands elsewhere (--copy makes one file of them)");
    }
    const std::string name = part->path().filename().string();
    // The HDF5 library reads a percent sign in a source's name as the number of a block.
    if (name.find('%') != std::string::npos || name[0] == '.') {
      throw usage_error(one_line(part->path().string()) +
                        ": a part whose name begins with a dot or has a percent sign cannot be "
                        "linked (--copy makes one file of the parts)");
    }
  }
}

namespace {

/// Writes the master's file; within an Hdf5Session.
class MasterWriter {
 public:
  MasterWriter(const MergedExport& whole, const fs::path& path) : whole_(whole), writer_(path) {}

  ExportManifest write() {
    ExportManifest stored;
    write_root_attributes(writer_, whole_.spec);
    create_export_marks(writer_, "1 when every part is there", stored);
    {
      write_parts(stored);
      const Hdf5Group calls = writer_.create_group(writer_.root(), "calls");
      for (size_t g = 0; g < whole_.layout.groups.size(); ++g) write_group(calls.id(), g);
    }
    writer_.close();
    return stored;
  }

 private:
  void write_parts(ExportManifest& stored) {
    const Hdf5Group list = writer_.create_group(writer_.root(), "parts");
    std::vector<std::string> files;
    std::vector<int64_t> bytes;
    std::vector<uint64_t> digests;
    for (const auto& part : whole_.parts) {
      stored.parts.push_back(
          {part->path().filename().string(), part->file().size(), part->digest()});
      files.push_back(stored.parts.back().file);
      bytes.push_back(stored.parts.back().bytes);
      digests.push_back(stored.parts.back().digest);
    }
    const auto count = std::ssize(files);
    const std::span<const int64_t> shape(&count, 1);
    writer_.write_strings(list.id(), "file", files, shape);
    writer_.write<int64_t>(list.id(), "bytes", std::span<const int64_t>(bytes), shape);
    const Hdf5Dataset digest =
        writer_.write<uint64_t>(list.id(), "checksum", std::span<const uint64_t>(digests), shape);
    writer_.attribute(digest.id(), "algorithm", "xxh3-64 of the part's checksums");
  }

  void write_group(hid_t calls, size_t g) {
    const ExportGroup& group = whole_.layout.groups[g];
    const Hdf5Group own = writer_.create_group(calls, group.name);
    write_group_attributes(writer_, own.id(), whole_.spec, group);
    const ExportScales scales = write_coordinates(writer_, own.id(), whole_.layout, group);
    const auto items = std::ssize(group.batch), heads = std::ssize(group.heads);
    if (whole_.layout.has_entries()) {
      const int64_t shape[] = {items, heads, group.grid.rows, group.grid.cols};
      const Hdf5Dataset entries = writer_.create_virtual(
          own.id(), whole_.layout.entries_name, entry_type(writer_, whole_.layout.request.encoding),
          shape, pieces_of(g, whole_.layout.entries_name));
      describe_entries(writer_, entries, whole_.layout);
      const Hdf5Dataset* const axes[] = {
          &scales.batch, &scales.head, &scales.query,
          whole_.layout.request.outputs ? &scales.channel : &scales.key};
      writer_.attach_scales(entries, axes);
    }
    if (!group.has_lse) return;
    const int64_t shape[] = {items, heads, group.grid.rows};
    const Hdf5Dataset lse = writer_.create_virtual(own.id(), "lse", Hdf5Writer::file_type<float>(),
                                                   shape, pieces_of(g, "lse"));
    describe_lse(writer_, lse, group);
    const Hdf5Dataset* const axes[] = {&scales.batch, &scales.head, &scales.query};
    writer_.attach_scales(lse, axes);
  }

  std::vector<Hdf5Elsewhere> pieces_of(size_t g, const std::string& dataset) const {
    std::vector<Hdf5Elsewhere> pieces;
    for (const GroupPiece& piece : whole_.pieces[g]) {
      pieces.push_back({piece.part->path().filename().string(),
                        "/calls/" + whole_.layout.groups[g].name + "/" + dataset, piece.first_head,
                        piece.heads});
    }
    return pieces;
  }

  const MergedExport& whole_;
  Hdf5Writer writer_;
};

}  // namespace

MergeResult link_maps(const MergedExport& whole, const fs::path& out,
                      const ExportWriteOptions& options) {
  check_linkable(whole, out);
  MergeResult result;
  OutputFile file(out, options.for_file(0));
  const ExportManifest wanted = make_manifest(whole.spec, whole.layout, {});
  if (is_complete_already(file, wanted, options)) {
    result.complete_already = true;
    return result;
  }
  take_up_same_export(file, RunForm::nothing, wanted);
  ExportManifest stored;
  {
    const Hdf5Session session;
    stored = MasterWriter(whole, file.new_part_path()).write();
  }
  const auto bytes = static_cast<int64_t>(fs::file_size(file.new_part_path()));
  file.open_new_part(bytes);
  seal_export(stored, file.data());
  file.publish_part();
  ReplacedShards replaced;
  replaced.note(file, recorded_structure_checksum(stored, file.data()), options.sync);
  file.commit();
  const std::string note = replaced.remove(file);
  if (!note.empty()) result.notes.push_back(note);
  result.warnings = file.warnings();
  result.bytes_written = bytes;
  return result;
}

}  // namespace attnscope
