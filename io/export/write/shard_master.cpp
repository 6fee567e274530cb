#include "io/export/write/shard_master.h"

#include "core/base/error.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/shard_folder.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {
ExportManifest write_shard_master(const ExportSpec& spec, const std::vector<Shard>& shards,
                                  const std::filesystem::path& folder,
                                  const std::filesystem::path& path) {
  const Hdf5Session session;
  ExportManifest stored;
  stored.shards = shards;
  Hdf5Writer writer(path);
  write_root_attributes(writer, spec);
  const hid_t root = writer.root();
  {
    create_export_marks(writer, "1 when every shard is there", stored);
    const Hdf5Group list = writer.create_group(root, "shards");
    const Hdf5Group calls = writer.create_group(root, "calls");
    std::vector<std::string> files;
    std::vector<int64_t> sizes;
    std::vector<uint64_t> sums;
    for (const Shard& shard : shards) {
      files.push_back((folder / shard.file).string());
      sizes.push_back(shard.bytes);
      sums.push_back(shard.checksum);
      writer.link_external(calls.id(), shard.name, files.back(), "/calls/" + shard.name);
    }
    const auto count = static_cast<int64_t>(shards.size());
    const std::span<const int64_t> shape(&count, 1);
    writer.write_strings(list.id(), "file", files, shape);
    writer.write<int64_t>(list.id(), "bytes", std::span<const int64_t>(sizes), shape);
    const Hdf5Dataset checksum =
        writer.write<uint64_t>(list.id(), "checksum", std::span<const uint64_t>(sums), shape);
    writer.attribute(checksum.id(), "algorithm", "xxh3-64");
  }
  writer.close();
  stored.file_bytes = PosixFile(path, PosixFile::Mode::read_only).size();
  return stored;
}

std::string commit_shards(OutputFile& file, const ExportSpec& spec,
                          const std::vector<Shard>& shards, bool sync) {
  file.require_sources_unchanged();
  // An earlier run may have come as far as this.
  file.remove_part();
  const ExportManifest stored =
      write_shard_master(spec, shards, file.shards_path().filename(), file.new_part_path());
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
