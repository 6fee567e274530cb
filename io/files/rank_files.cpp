#include "io/files/rank_files.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

constexpr std::string_view kJournal = ".journal.";
constexpr std::string_view kSums = ".sums.";

constexpr std::chrono::seconds kSeenWithin{60};
constexpr std::chrono::milliseconds kLook{50};

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

std::string show_folder(const path& out) {
  std::random_device random;
  std::string words;
  for (int i = 0; i < 4; ++i) words += std::to_string(random()) + " ";
  words += std::to_string(getpid());
  PosixFile seen(rank_sums_path(out, 0), PosixFile::Mode::create);
  seen.write_at(std::as_bytes(std::span(words)), 0);
  seen.sync();
  seen.close();
  return words;
}

void await_folder(const path& out, const std::string& words) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (beginning_of_file(rank_sums_path(out, 0), words.size() + 1) != words) {
    if (Clock::now() - begin > kSeenWithin) {
      throw file_error(out.string(), "",
                       "is not in a folder that this host shares with the first process's: what "
                       "that wrote there is not to be seen");
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace attnscope
