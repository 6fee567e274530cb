#include "io/files/shard_folder.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

using std::filesystem::path;

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
    if (is_shard && kept.count(name) == 0) remove_path(file);
  }
}

}  // namespace attnscope
