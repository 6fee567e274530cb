#include "io/files/shard_folder.h"

#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/files/posix_file.h"

namespace attnscope {

using std::filesystem::path;

void remove_shards(const path& folder) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(folder, error);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_directory(status)) {
    throw file_error(folder.string(), "", "is no folder");
  }
  std::vector<path> files;
  for (std::filesystem::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    const std::string extension = item->path().extension().string();
    if (extension == ".h5" || extension == ".tmp") files.push_back(item->path());
  }
  for (const path& file : files) std::filesystem::remove(file, error);
  std::filesystem::remove(folder, error);
  if (error && std::filesystem::exists(folder)) {
    throw errno_error(folder, "cannot be removed", error.value());
  }
}

}  // namespace attnscope
