#include "io/files/shard_folder.h"

#include <dirent.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <sstream>
#include <string_view>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// Of the lists of replaced shards: kList.DIGEST, whose lines after the first are a name each.
constexpr std::string_view kList = "replaced.";
constexpr std::string_view kListBegins = "attnscope shards replaced by ";
constexpr size_t kDigits = 16;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// The names in a folder, by readdir(3): where memory runs out, the standard library's iterator
/// ends the process.
std::vector<path> files_of(const path& folder) {
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (!open) throw errno_error(folder, "cannot be read", errno);
  std::vector<path> files;
  while (true) {
    errno = 0;
    const dirent* item = ::readdir(open.get());
    if (item == nullptr) break;
    const std::string name = item->d_name;
    if (name != "." && name != "..") files.push_back(folder / name);
  }
  if (errno != 0) throw errno_error(folder, "cannot be read", errno);
  return files;
}

void remove_path(const path& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) throw errno_error(file, "cannot be removed", error.value());
}

bool is_folder(const path& name) {
  std::error_code error;
  return std::filesystem::is_directory(std::filesystem::symlink_status(name, error));
}

bool are_digits(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// "NAME.tmp" of a shard that is being written, or copied.
bool becomes_shard(const std::string& name) {
  return name.starts_with("step") && name.ends_with(".tmp");
}

std::string list_name(uint64_t digest) { return fmt::format("{}{:016x}", kList, digest); }

/// True of a list of replaced shards, or of one that was being written.
bool is_list(const path& file) {
  const std::string whole = file.filename().string();
  std::string_view name = whole;
  if (!name.starts_with(kList)) return false;
  name.remove_prefix(kList.size());
  if (name.ends_with(".tmp")) name.remove_suffix(4);
  if (!are_digits(name)) return false;
  std::error_code error;
  const bool is_regular =
      std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error));
  return is_regular && kListBegins.starts_with(beginning_of_file(file, kListBegins.size()));
}

}  // namespace

bool has_shard_name(const std::string& name) {
  constexpr std::string_view kEnd = ".h5";
  if (!name.starts_with("step") || !name.ends_with(kEnd)) return false;
  const std::string_view rest = std::string_view(name).substr(0, name.size() - kEnd.size());
  const size_t dot = rest.rfind('.');
  return dot != rest.npos && are_digits(rest.substr(dot + 1));
}

void require_shards_alone(const path& folder) {
  for (const path& file : files_of(folder)) {
    const std::string name = file.filename().string();
    if (has_shard_name(name) || becomes_shard(name)) continue;
    throw file_error(
        folder.string(), "",
        "holds " + one_line(name) + ", which is no shard, and is not removed: move it away first");
  }
}

void remove_shards(const path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder, error))) return;
  if (!is_folder(folder)) throw file_error(folder.string(), "", "is no folder");
  require_shards_alone(folder);
  for (const path& file : files_of(folder)) remove_path(file);
  remove_path(folder);
}

void move_shards(const path& from, const path& to, bool sync) {
  require_shards_alone(from);
  std::error_code error;
  const bool created = std::filesystem::create_directory(to, error);
  if (error) throw errno_error(to, "cannot be created", error.value());
  if (!is_folder(to)) throw file_error(to.string(), "", "is no folder");
  for (const path& file : files_of(from)) {
    if (file.extension() == ".tmp") {
      remove_path(file);
    } else {
      rename_file(file, to / file.filename(), true);
    }
  }
  if (sync) {
    sync_folder_of(to / ".");
    if (created) sync_folder_of(to);
  }
  remove_path(from);
}

std::vector<std::string> files_in_folder(const path& folder) {
  std::vector<std::string> names;
  if (!is_folder(folder)) return names;
  for (const path& file : files_of(folder)) names.push_back(file.filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::string> read_replaced_list(const path& folder, uint64_t digest) {
  std::set<std::string> names;
  const path list = folder / list_name(digest);
  if (!is_folder(folder) || !is_list(list)) return names;
  std::istringstream lines(read_file_text(list));
  for (std::string name; std::getline(lines, name);) {
    const bool is_inner = name.find('/') == name.npos;
    if (is_inner && has_shard_name(name)) names.insert(name);
  }
  return names;
}

void write_replaced_list(const path& folder, uint64_t digest, const std::set<std::string>& names,
                         bool sync) {
  const path list = folder / list_name(digest);
  path part = list;
  part += ".tmp";
  std::string text = fmt::format("{}{:016x}\n", kListBegins, digest);
  for (const std::string& name : names) text += name + "\n";
  PosixFile file(part, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
  if (sync) file.sync();
  file.close();
  rename_file(part, list, true);
  if (sync) sync_folder_of(list);
}

bool holds_replaced_list(const path& folder) {
  for (const std::string& name : files_in_folder(folder)) {
    if (is_list(folder / name)) return true;
  }
  return false;
}

void remove_replaced_lists(const path& folder) {
  for (const std::string& name : files_in_folder(folder)) {
    if (is_list(folder / name)) remove_path(folder / name);
  }
}

void remove_files(const path& folder, const std::set<std::string>& names) {
  if (!is_folder(folder)) return;
  for (const std::string& name : names) remove_path(folder / name);
  if (files_of(folder).empty()) remove_path(folder);
}

}  // namespace attnscope
