#include "io/capture/capture_guard.h"

#include "io/capture/capture.h"
#include "io/capture/capture_location.h"

namespace attnscope {

std::vector<std::filesystem::path> guarded_inputs(const Capture& capture) {
  std::vector<std::filesystem::path> inputs = capture.files();
  if (const auto folder = capture_folder(capture.path())) {
    // "capture.json" alone stands in this folder.
    inputs.push_back(folder->empty() ? "." : *folder);
  }
  return inputs;
}

}  // namespace attnscope
