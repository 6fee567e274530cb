#include "viewer/app/sample_capture.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "io/capture/capture_folder.h"
#include "io/capture/synthetic_capture.h"
#include "io/files/posix_file.h"

namespace attnscope {

namespace fs = std::filesystem;

namespace {

/// A new folder that nobody else may enter.
fs::path temporary_folder() {
  std::error_code failed;
  const fs::path folder = fs::temp_directory_path(failed);
  if (failed) throw errno_error("TMPDIR", "names no folder for a sample", failed.value());
  std::string name = (folder / "attnscope-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw errno_error(name, "cannot be created", errno);
  return name;
}

}  // namespace

void SampleCapture::write(const fs::path& out) {
  SyntheticCapture sample;
  sample.model = "synthetic sample";
  sample.tokens = TokenGrid::video(16 + 5 * 12 * 20, {5, 12, 20}, 16, TextPlace::start);
  sample.kinds.assign(head_kinds().begin(), head_kinds().end());
  sample.head_dim = 64;
  sample.layers = 3;
  sample.values = true;
  check_capture_target(out, {.bytes = check_synthetic_capture(sample, out)});
  write_synthetic_capture(sample, out, {});
}

SampleCapture::SampleCapture()
    : folder_(temporary_folder()), capture_(folder_ / "synthetic-sample") {
  try {
    write(capture_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

bool SampleCapture::holds(const fs::path& path) const {
  const fs::path inner =
      fs::weakly_canonical(fs::absolute(path)).lexically_relative(fs::weakly_canonical(folder_));
  return !inner.empty() && *inner.begin() != "..";
}

SampleCapture::~SampleCapture() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace attnscope
