#pragma once

#include <filesystem>

namespace attnscope {

/// A synthetic capture to try the window with, in a temporary folder that goes with this object.
class SampleCapture {
 public:
  /// Throws Error(file) and Error(resource) where it cannot be written.
  SampleCapture();
  ~SampleCapture();
  SampleCapture(const SampleCapture&) = delete;
  SampleCapture& operator=(const SampleCapture&) = delete;

  const std::filesystem::path& capture() const { return capture_; }
  /// True of a path in the folder that goes.
  bool holds(const std::filesystem::path& path) const;
  /// Writes the same capture elsewhere. Throws Error(file) and Error(resource), also where
  /// there is something of this name.
  static void write(const std::filesystem::path& out);

 private:
  std::filesystem::path folder_, capture_;
};

}  // namespace attnscope
