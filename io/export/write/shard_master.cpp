#include "io/export/write/shard_master.h"

#include <cassert>
#include <span>

#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/list_lengths.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/kept_weights.h"
#include "io/export/write/master_group.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/shard_folder.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {
namespace {

/// Lengths of the lists of each shard; empty ones of other products.
using ListLengths = std::vector<std::vector<int64_t>>;

ListLengths list_lengths(const OutputFile& file, const ExportSpec& spec, const ExportLayout& layout,
                         const std::vector<Shard>& shards) {
  ListLengths lengths(shards.size());
  if (spec.product != ExportProduct::threshold) return lengths;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    std::error_code error;
    const std::filesystem::path moved = file.shards_path() / shards[g].file;
    const std::filesystem::path waiting = file.part_shards_path() / shards[g].file;
    lengths[g] = read_list_lengths(std::filesystem::exists(waiting, error) ? waiting : moved,
                                   shards[g].name, list_names(layout.groups[g]));
  }
  return lengths;
}

/// Creates the master, to be sealed by seal_export().
ExportManifest write_shard_master(const OutputFile& file, const ExportSpec& spec,
                                  const ExportLayout& layout, const std::vector<Shard>& shards) {
  const std::filesystem::path& path = file.new_part_path();
  const std::filesystem::path folder = file.shards_path().filename();
  const ListLengths lengths = list_lengths(file, spec, layout, shards);
  const Hdf5Session session;
  ExportManifest stored;
  stored.shards = shards;
  Hdf5Writer writer(path);
  write_root_attributes(writer, spec);
  {
    create_export_marks(writer, "1 when every shard is there", stored);
    std::vector<LinkedPart> files;
    for (const Shard& shard : shards) {
      files.push_back({(folder / shard.file).string(), shard.bytes, shard.checksum});
    }
    write_linked_files(writer, "shards", "shard", files, "xxh3-64");
    const bool told = layout.groups.size() == shards.size();
    if (told) write_call_index(writer, layout.groups);
    const Hdf5Group calls = writer.create_group(writer.root(), "calls");
    for (size_t g = 0; g < shards.size(); ++g) {
      const std::string& source = files[g].file;
      if (!told) {
        writer.link_external(calls.id(), shards[g].name, source, "/calls/" + shards[g].name);
        continue;
      }
      const ExportGroup& group = layout.groups[g];
      assert(group.name == shards[g].name);
      const MasterSource all{source, 0, std::ssize(group.heads)};
      write_master_group(writer, calls.id(), spec, layout, group, {&all, 1}, lengths[g]);
    }
  }
  writer.close();
  stored.file_bytes = PosixFile(path, PosixFile::Mode::read_only).size();
  return stored;
}

}  // namespace

std::string commit_shards(OutputFile& file, const ExportSpec& spec, const ExportLayout& layout,
                          const std::vector<Shard>& shards, bool sync) {
  file.require_sources_unchanged();
  // An earlier run may have come as far as this.
  file.remove_part();
  const ExportManifest stored = write_shard_master(file, spec, layout, shards);
  file.open_new_part(stored.file_bytes);
  seal_export(stored, file.data());
  file.publish_part();
  // Until OUT has its new name, nothing says that these are its shards, and an older OUT has all
  // of its own.
  move_shards(file.part_shards_path(), file.shards_path(), sync);
  ReplacedShards replaced;
  replaced.note(file, recorded_structure_checksum(stored, file.data()), sync);
  file.commit();
  replaced.remove(file);
  return note_beside_shards(file, shards);
}

}  // namespace attnscope
