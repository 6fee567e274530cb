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
  const auto before = [&](int64_t a, int64_t b) {
    const float x = line[static_cast<size_t>(a)];
    const float y = line[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  // A heap whose first token is the last of those chosen so far.
  std::vector<int64_t> chosen;
  const auto most = static_cast<size_t>(std::min(count, among.size()));
  for (int64_t token = among.begin; token < among.end && most > 0; ++token) {
    if (chosen.size() == most) {
      if (!before(token, chosen.front())) continue;
      std::pop_heap(chosen.begin(), chosen.end(), before);
      chosen.pop_back();
    }
    chosen.push_back(token);
    std::push_heap(chosen.begin(), chosen.end(), before);
  }
  std::sort_heap(chosen.begin(), chosen.end(), before);
  return chosen;
}

}  // namespace attnscope
