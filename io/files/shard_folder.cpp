#include "io/files/shard_folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <sstream>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// One name a line.
constexpr const char* kReplacedList = "replaced";

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// What stands in a folder. Where memory runs out, the standard library's iterator ends the
/// process.
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

}  // namespace

void remove_shards(const path& folder) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(folder, error);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_directory(status)) {
    throw file_error(folder.string(), "", "is no folder");
  }
  for (const path& file : files_of(folder)) {
    const std::string extension = file.extension().string();
    if (extension == ".h5" || extension == ".tmp") remove_path(file);
  }
  remove_path(folder);
}

void move_shards(const path& from, const path& to, bool sync) {
  std::error_code error;
  const bool created = std::filesystem::create_directory(to, error);
  if (error) throw errno_error(to, "cannot be created", error.value());
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

void remove_other_shards(const path& folder, const std::set<std::string>& kept) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return;
  for (const path& file : files_of(folder)) {
    const std::string name = file.filename().string();
    const bool is_shard = name.rfind("step", 0) == 0 && file.extension() == ".h5";
    if ((is_shard && kept.count(name) == 0) || name == kReplacedList) remove_path(file);
  }
}

void list_replaced_shards(const path& folder, const std::set<std::string>& names, bool sync) {
  const path list = folder / kReplacedList;
  path part = list;
  part += ".tmp";
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  remove_path(part);
  PosixFile file(part, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
  if (sync) file.sync();
  file.close();
  rename_file(part, list, true);
  if (sync) sync_folder_of(list);
}

std::vector<std::string> remove_listed_shards(const path& folder,
                                              const std::set<std::string>& kept) {
  const path list = folder / kReplacedList;
  std::error_code none;
  if (!std::filesystem::exists(list, none)) return {};
  std::istringstream lines(read_file_text(list));
  for (std::string name; std::getline(lines, name);) {
    // The list may be anybody's by now.
    const bool is_shard = name.find('/') == std::string::npos && path(name).extension() == ".h5";
    if (is_shard && kept.count(name) == 0) remove_path(folder / name);
  }
  std::vector<std::string> others;
  for (const path& file : files_of(folder)) {
    if (file != list) others.push_back(file.filename().string());
  }
  std::sort(others.begin(), others.end());
  remove_path(list);
  if (others.empty()) remove_path(folder);
  return others;
}

}  // namespace attnscope
