#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "core/base/error.h"

namespace attnscope {

class Capture;

/// A file that cannot be read may be one that is still being written: for so long it is looked at
/// again before that is told as a fault.
constexpr std::chrono::seconds kWritingPatience{5};

/// True where `path` has anything that a capture could be: false where there is nothing yet,
/// or a folder with nothing in it but what a recorder leaves before its first call is complete.
bool has_capture_begun(const std::filesystem::path& path);

/// True where calls can be added to what is at `path`: a folder, or its capture.json.
bool can_grow(const std::filesystem::path& path);

/// True where `now` has the pictures of `before` under their numbers, and perhaps more.
bool keeps_pictures(const Capture& before, const Capture& now);

/// Gives what `open` gives. Of a capture that is `growing`, a file that cannot be read is tried
/// again after each `wait`, for kWritingPatience at most. Throws what `open` and `wait` throw.
template <class Open>
auto open_when_written(bool growing, const std::function<void()>& wait, Open open) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    try {
      return open();
    } catch (const Error& e) {
      const auto tried = std::chrono::steady_clock::now() - start;
      if (!growing || e.code() != ErrorCode::file || tried >= kWritingPatience) throw;
    }
    wait();
  }
}

/// The state on disk that changes as a call is added to a capture: of the folder with every new
/// file, of capture.json as it is replaced. It may change without one.
class CaptureStamp {
 public:
  static CaptureStamp of(const std::filesystem::path& path);
  friend bool operator==(const CaptureStamp&, const CaptureStamp&) = default;

 private:
  std::array<int64_t, 4> folder_{}, catalogue_{};
};

}  // namespace attnscope
