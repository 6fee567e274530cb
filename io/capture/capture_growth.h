#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

namespace attnscope {

class Capture;

/// Whether there is anything at `path` that a capture could be: false where there is nothing yet,
/// or a folder with nothing in it but what a recorder leaves before its first call is complete.
bool has_capture_begun(const std::filesystem::path& path);

/// Whether calls can be added to what is at `path`: a folder, or its capture.json.
bool can_grow(const std::filesystem::path& path);

/// Whether `now` has the pictures of `before` under their numbers, and perhaps more.
bool keeps_pictures(const Capture& before, const Capture& now);

/// What changes as a call is added to a capture: the folder with every new file, capture.json as it
/// is replaced. It may change without one.
class CaptureStamp {
 public:
  static CaptureStamp of(const std::filesystem::path& path);
  friend bool operator==(const CaptureStamp&, const CaptureStamp&) = default;

 private:
  std::array<int64_t, 4> folder_{}, catalogue_{};
};

}  // namespace attnscope
