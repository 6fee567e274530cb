#include "io/export/write/replaced_shards.h"

#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/files/shard_folder.h"

namespace attnscope {
namespace {

/// Foreign files that a note names.
constexpr size_t kNamed = 3;

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// Files in OUT.d that OUT, as it is now, says to be its shards. A master may name any file:
/// those are meant that are called as shards are.
std::set<std::string> named_shards(const OutputFile& file) {
  std::set<std::string> names;
  try {
    for (const Shard& shard : read_manifest(file.out()).shards) {
      const bool is_shard = shard.file == shard_file_name(shard.name, shard.checksum) ||
                            shard.file == shard.name + ".h5";
      if (is_shard) names.insert(shard.file);
    }
  } catch (const Error&) {
    // It is no export, or none that can be read: nothing is known to be its own.
  }
  return names;
}

}  // namespace

void note_replaced_shards(const OutputFile& file, bool sync) {
  if (!is_folder(file.shards_path())) return;
  const std::set<std::string> names = named_shards(file);
  if (!names.empty()) list_replaced_shards(file.shards_path(), names, sync);
}

std::string remove_replaced_shards(const OutputFile& file) {
  const std::filesystem::path& folder = file.shards_path();
  if (!is_folder(folder)) return "";
  try {
    const std::vector<std::string> others = remove_listed_shards(folder, named_shards(file));
    if (others.empty()) return "";
    std::string text;
    for (size_t i = 0; i < others.size() && i < kNamed; ++i) {
      text += (i > 0 ? ", " : "") + others[i];
    }
    if (others.size() > kNamed) text += fmt::format(" and {} more", others.size() - kNamed);
    return one_line(
        fmt::format("note: {} stays: it holds what is none of the replaced export's: {}",
                    folder.string(), text));
  } catch (const Error& error) {
    throw file_error(
        file.out().string(), "",
        std::string("complete, but shards that it replaced are left: ") + error.what());
  }
}

}  // namespace attnscope
