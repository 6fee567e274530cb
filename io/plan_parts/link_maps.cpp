#include "io/plan_parts/link_maps.h"

#include <string>

#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/master_group.h"
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
    // Readers follow no such name (is_plain() of the manifest).
    if (name[0] == '.') {
      throw usage_error(one_line(part->path().string()) +
                        ": a part whose name begins with a dot cannot be linked (--copy makes one "
                        "file of the parts)");
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
      write_call_index(writer_, whole_.layout.groups);
      const Hdf5Group calls = writer_.create_group(writer_.root(), "calls");
      for (size_t g = 0; g < whole_.layout.groups.size(); ++g) write_group(calls.id(), g);
    }
    writer_.close();
    return stored;
  }

 private:
  void write_parts(ExportManifest& stored) {
    for (const auto& part : whole_.parts) {
      stored.parts.push_back(
          {part->path().filename().string(), part->file().size(), part->digest()});
    }
    write_linked_files(writer_, "parts", "part", stored.parts, "xxh3-64 of the part's checksums");
  }

  void write_group(hid_t calls, size_t g) {
    std::vector<MasterSource> sources;
    for (const GroupPiece& piece : whole_.pieces[g]) {
      sources.push_back({piece.part->path().filename().string(), piece.first_head, piece.heads});
    }
    write_master_group(writer_, calls, whole_.spec, whole_.layout, whole_.layout.groups[g],
                       sources);
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
