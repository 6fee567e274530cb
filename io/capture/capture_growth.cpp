#include "io/capture/capture_growth.h"

#include <sys/stat.h>

#include <algorithm>

#include "io/capture/capture.h"
#include "io/capture/capture_location.h"
#include "io/capture/facts/capture_catalogue.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// A file that is not complete under this name, or no call's.
bool is_unfinished(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".lock" || extension == ".held" || extension == ".part" ||
         file.filename().string().starts_with(".");
}

/// Which file it is, when it was written, and how large it is; all 0 where there is none.
std::array<int64_t, 4> state_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<int64_t>(info.st_ino), info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
          info.st_size};
}

}  // namespace

bool has_capture_begun(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  if (!fs::is_directory(path, error)) return true;
  for (fs::directory_iterator item(path, error), end; !error && item != end;
       item.increment(error)) {
    if (!is_unfinished(item->path())) return true;
  }
  return static_cast<bool>(error);
}

bool can_grow(const fs::path& path) { return capture_folder(path).has_value(); }

bool keeps_pictures(const Capture& before, const Capture& now) {
  const std::vector<FrameFile>&old = before.frames(), &all = now.frames();
  return all.size() >= old.size() && std::equal(old.begin(), old.end(), all.begin());
}

CaptureStamp CaptureStamp::of(const fs::path& path) {
  const fs::path folder = capture_folder(path).value_or(path);
  CaptureStamp stamp;
  stamp.folder_ = state_of(folder);
  stamp.catalogue_ = state_of(folder / kCatalogueName);
  return stamp;
}

}  // namespace attnscope
