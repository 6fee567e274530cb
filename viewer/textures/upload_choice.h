#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace attnscope {

/// The ways of a tile to its texture: converted and copied by the host, or by the device that
/// computed it.
enum class UploadWay : uint8_t { staging, interop };

/// Finds out which way is the faster one here: both in turn, until each was measured often enough.
/// Not thread-safe.
class UploadChoice {
 public:
  /// Measurements of each way; the first of them, which sets things up, does not count.
  static constexpr int kTrials = 6;

  /// The way for the next tile that can go either way.
  UploadWay next() const;
  /// Notes the time that a tile took by this way, divided by its texels; in any one unit.
  void measured(UploadWay way, double time);
  /// True once each way was measured often enough: next() does not change any more.
  bool decided() const;

 private:
  std::vector<double>& of(UploadWay way) { return times_[static_cast<size_t>(way)]; }
  const std::vector<double>& of(UploadWay way) const { return times_[static_cast<size_t>(way)]; }

  std::array<std::vector<double>, 2> times_;
};

}  // namespace attnscope
