#include "io/files/rank_files.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

constexpr std::string_view kJournal = ".journal.";
constexpr std::string_view kSums = ".sums.";

path named(const path& out, std::string_view kind, int rank) {
  path result = out;
  return result += std::string(kind) + std::to_string(rank);
}

/// The rank that a file's name has after `out`'s; nothing of names that are none of ours.
std::optional<int> rank_of(std::string_view name, const std::string& out) {
  if (!name.starts_with(out)) return std::nullopt;
  name.remove_prefix(out.size());
  if (name.ends_with(".tmp")) name.remove_suffix(4);
  for (const std::string_view kind : {kJournal, kSums}) {
    if (!name.starts_with(kind)) continue;
    const std::string_view digits = name.substr(kind.size());
    int rank = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && end == digits.data() + digits.size() && rank >= 0) return rank;
  }
  return std::nullopt;
}

std::vector<std::pair<int, path>> found_beside(const path& out) {
  std::vector<std::pair<int, path>> found;
  const std::string name = out.filename().string();
  const path folder = folder_of(out);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  // A folder that is missing has none. (The standard library's iterator ends the process where
  // memory runs out.)
  while (const dirent* const item = listing ? ::readdir(listing.get()) : nullptr) {
    if (const auto rank = rank_of(item->d_name, name)) {
      found.emplace_back(*rank, out.parent_path() / item->d_name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

path rank_journal_path(const path& out, int rank) { return named(out, kJournal, rank); }
path rank_sums_path(const path& out, int rank) { return named(out, kSums, rank); }

std::vector<int> ranks_beside(const path& out) {
  std::vector<int> ranks;
  for (const auto& [rank, file] : found_beside(out)) {
    if (rank > 0 && (ranks.empty() || ranks.back() != rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<path> rank_files_beside(const path& out) {
  std::vector<path> files;
  for (auto& [rank, file] : found_beside(out)) files.push_back(std::move(file));
  return files;
}

void remove_rank_files(const path& out) {
  for (const path& file : rank_files_beside(out)) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
      throw errno_error(file, "cannot be removed", errno);
    }
  }
}

}  // namespace attnscope
