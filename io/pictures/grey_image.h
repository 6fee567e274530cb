#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attnscope {

/// A picture in grey, row-major.
struct GreyImage {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// The image stretched to another size: a pixel is the mean of those it covers (the one under its
/// corner where it covers less than one).
GreyImage resized(const GreyImage& image, int width, int height);

}  // namespace attnscope
