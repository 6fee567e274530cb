#include "io/export/write/replaced_shards.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
#include "io/files/checksum.h"
#include "io/files/shard_folder.h"

namespace attnscope {
namespace {

/// Foreign files that a note names.
constexpr size_t kNamed = 3;

/// The shards that a master OUT names, and the checksum of its structure.
struct StoredNames {
  std::set<std::string> shards;    ///< files in OUT.d
  std::optional<uint64_t> digest;  ///< of its structure
};

/// A master may name any file: those are meant that are called as shards are. Before names had
/// checksums they could be anybody's: the bytes tell.
bool is_shard_of_its_own(const Shard& shard, const std::filesystem::path& folder) {
  if (shard.file == shard_file_name(shard.name, shard.checksum)) return true;
  if (shard.file != shard.name + ".h5" || shard.name.find('/') != std::string::npos) return false;
  try {
    int64_t bytes = 0;
    return file_checksum(folder / shard.file, {}, &bytes) == shard.checksum && bytes == shard.bytes;
  } catch (const Error&) {
    return false;
  }
}

/// Reads the names in the master at `master`, none where there is no file; nothing where it is no
/// export or cannot be read: then no shard is known to be its own.
std::optional<StoredNames> names_in(const std::filesystem::path& master,
                                    const std::filesystem::path& folder) {
  if (!file_identity(master)) return StoredNames{};
  try {
    const ExportManifest stored = read_manifest(master);
    StoredNames names;
    names.digest =
        recorded_structure_checksum(stored, PosixFile(master, PosixFile::Mode::read_only));
    for (const Shard& shard : stored.shards) {
      if (is_shard_of_its_own(shard, folder)) names.shards.insert(shard.file);
    }
    return names;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The first files and how many more.
std::string list_of(const std::vector<std::string>& others) {
  std::string text;
  for (size_t i = 0; i < others.size() && i < kNamed; ++i) {
    text += (i > 0 ? ", " : "") + others[i];
  }
  if (others.size() > kNamed) text += fmt::format(" and {} more", others.size() - kNamed);
  return text;
}

std::string note_of_others(const std::filesystem::path& folder) {
  const std::vector<std::string> others = files_in_folder(folder);
  if (others.empty()) return "";
  return one_line(fmt::format("note: {} stays: it holds what is none of the replaced export's: {}",
                              folder.string(), list_of(others)));
}

}  // namespace

void ReplacedShards::note(const OutputFile& file, uint64_t digest, bool sync) {
  const std::filesystem::path& folder = file.shards_path();
  if (files_in_folder(folder).empty()) return;
  if (const auto older = names_in(file.out(), folder)) {
    names_ = older->shards;
    // The run that wrote OUT may have been killed before it had removed these.
    if (older->digest) names_.merge(read_replaced_list(folder, *older->digest));
  }
  remove_replaced_lists(folder);
  if (!names_.empty()) write_replaced_list(folder, digest, names_, sync);
}

std::string ReplacedShards::remove(const OutputFile& file) {
  const std::filesystem::path& folder = file.shards_path();
  if (names_.empty() && !holds_replaced_list(folder)) return "";
  try {
    const auto now = names_in(file.out(), folder);
    if (!now) return "";
    if (now->digest) names_.merge(read_replaced_list(folder, *now->digest));
    if (names_.empty()) return "";
    for (const std::string& kept : now->shards) names_.erase(kept);
    remove_files(folder, names_);
    remove_replaced_lists(folder);
    remove_files(folder, {});
    return now->shards.empty() ? note_of_others(folder) : "";
  } catch (const Error& error) {
    throw file_error(
        file.out().string(), "",
        std::string("complete, but shards that it replaced are left: ") + error.what());
  }
}

std::string note_beside_shards(const OutputFile& file, const std::vector<Shard>& shards) {
  const std::filesystem::path& folder = file.shards_path();
  std::vector<std::string> others = files_in_folder(folder);
  for (const Shard& shard : shards) std::erase(others, shard.file);
  if (others.empty()) return "";
  return one_line(fmt::format("note: {} holds more than the shards of this export: {}",
                              folder.string(), list_of(others)));
}

void remove_given_up_shards(const OutputFile& file) {
  const std::filesystem::path& folder = file.shards_path();
  // Shards are moved once the master is OUT.part.
  if (files_in_folder(folder).empty() || !file_identity(file.part_path())) return;
  const auto given_up = names_in(file.part_path(), folder);
  if (!given_up || given_up->shards.empty()) return;
  const auto kept = names_in(file.out(), folder);
  if (!kept) return;
  std::set<std::string> names;
  std::set_difference(given_up->shards.begin(), given_up->shards.end(), kept->shards.begin(),
                      kept->shards.end(), std::inserter(names, names.end()));
  remove_files(folder, names);
}

}  // namespace attnscope
