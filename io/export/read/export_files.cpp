#include "io/export/read/export_files.h"

#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The names of shards and parts beside the export, with their sizes.
std::vector<std::pair<std::string, int64_t>> named_files(const ExportManifest& stored) {
  std::vector<std::pair<std::string, int64_t>> named;
  for (const Shard& shard : stored.shards) {
    named.emplace_back(stored.shard_folder + "/" + shard.file, shard.bytes);
  }
  for (const LinkedPart& part : stored.parts) named.emplace_back(part.file, part.bytes);
  return named;
}

}  // namespace

std::vector<std::filesystem::path> files_of_export(const std::filesystem::path& path,
                                                   const ExportManifest& stored) {
  std::vector<std::filesystem::path> files{path};
  for (const auto& [name, bytes] : named_files(stored)) files.push_back(path.parent_path() / name);
  return files;
}

std::vector<LackingFile> lacking_files(const std::filesystem::path& path,
                                       const ExportManifest& stored) {
  std::vector<LackingFile> lacking;
  for (const auto& [name, expected] : named_files(stored)) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path.parent_path() / name, error);
    const int64_t found = error ? -1 : static_cast<int64_t>(bytes);
    if (found != expected) lacking.push_back({name, found, expected});
  }
  return lacking;
}

std::string renamed_text(const ExportManifest& stored) {
  if (stored.named_folder.empty() || stored.named_folder == stored.shard_folder) return "";
  // A master that waits for its name is written under the one that it gets.
  if (stored.shard_folder.ends_with(".part.d")) return "";
  return "has another name than it was written under: other programs look for its shards in " +
         one_line(stored.named_folder) + ", and read NaN or 0; give both their names again";
}

}  // namespace attnscope
