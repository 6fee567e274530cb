#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "io/pictures/canvas.h"

namespace attnscope {

/// Counts the colours of pictures and finds at most 256 that stand for them. Deterministic; not
/// thread-safe.
///
/// Not giflib's work: its quantiser wants all images in memory, as a plane for each channel, and
/// has moved from one library to another and back between releases.
class PaletteMaker {
 public:
  static constexpr size_t kColours = 256;
  PaletteMaker();
  void add(const Canvas& canvas);
  /// Call it once, after all add().
  void finish();

  const std::vector<Rgb>& colours() const { return colours_; }
  /// The entry that stands for a colour that was added.
  uint8_t index_of(Rgb colour) const;

 private:
  /// Colours that agree in the upper five bits of each channel.
  struct Bin {
    int64_t count = 0;
    std::array<int64_t, 3> sum{};
    uint8_t entry = 0;
  };
  void cut_boxes();

  bool exact_ = true;
  std::unordered_map<uint32_t, uint8_t> entries_;  ///< while there are at most 256
  std::vector<Bin> bins_;
  std::vector<Rgb> colours_;
};

}  // namespace attnscope
