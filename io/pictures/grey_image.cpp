#include "io/pictures/grey_image.h"

#include <algorithm>

namespace attnscope {
namespace {

/// The source pixels [begin, end) under destination pixel i of `count`.
struct Span {
  int begin = 0, end = 0;
};

Span covered(int i, int count, int extent) {
  const auto at = [&](int n) { return static_cast<int>(static_cast<int64_t>(n) * extent / count); };
  return {at(i), std::max(at(i + 1), at(i) + 1)};
}

}  // namespace

GreyImage resized(const GreyImage& image, int width, int height) {
  GreyImage result{width, height, {}};
  result.pixels.reserve(static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int y = 0; y < height; ++y) {
    const Span rows = covered(y, height, image.height);
    for (int x = 0; x < width; ++x) {
      const Span cols = covered(x, width, image.width);
      int64_t sum = 0;
      for (int r = rows.begin; r < rows.end; ++r) {
        const uint8_t* row =
            image.pixels.data() + static_cast<size_t>(r) * static_cast<size_t>(image.width);
        for (int c = cols.begin; c < cols.end; ++c) sum += row[c];
      }
      const int64_t area = static_cast<int64_t>(rows.end - rows.begin) * (cols.end - cols.begin);
      result.pixels.push_back(static_cast<uint8_t>((sum + area / 2) / area));
    }
  }
  return result;
}

}  // namespace attnscope
