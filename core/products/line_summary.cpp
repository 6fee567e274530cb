#include "core/products/line_summary.h"

#include <algorithm>
#include <numeric>

namespace attnscope {

double mass_on(std::span<const float> line, IndexRange tokens) {
  return std::accumulate(line.begin() + tokens.begin, line.begin() + tokens.end, 0.0);
}

std::vector<double> frame_masses(std::span<const float> line, const TokenGrid& tokens) {
  std::vector<double> masses;
  const int64_t frame = tokens.height() * tokens.width();
  for (int64_t t = 0; t < tokens.frames(); ++t) {
    const int64_t begin = tokens.video_range().begin + t * frame;
    masses.push_back(mass_on(line, {begin, begin + frame}));
  }
  return masses;
}

std::vector<int64_t> largest_tokens(std::span<const float> line, IndexRange among, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(among.size()));
  std::iota(order.begin(), order.end(), among.begin);
  const int64_t most = std::min(count, among.size());
  std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](int64_t a, int64_t b) {
    const float x = line[static_cast<size_t>(a)];
    const float y = line[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  order.resize(static_cast<size_t>(most));
  return order;
}

}  // namespace attnscope
