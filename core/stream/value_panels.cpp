#include "core/stream/value_panels.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

constexpr int64_t kPieceBytes = int64_t{256} << 10;

/// Keys that are read at once.
int64_t piece_keys(const HeadTensor& v) {
  return std::clamp<int64_t>(kPieceBytes / v.row_bytes(), 1, v.tokens());
}

int64_t piece_bytes(const HeadTensor& v) { return piece_keys(v) * (v.row_bytes() + v.width() * 4); }

}  // namespace

int64_t BoundValues::bytes(const AttentionProblem& problem) {
  const HeadTensor& v = problem.v();
  const int64_t factors[] = {v.tokens(), round_up(v.width(), kValueChannels), 4};
  return checked_count(factors).value_or(std::numeric_limits<int64_t>::max());
}

int64_t BoundValues::transient_bytes(const AttentionProblem& problem) {
  // HeadTensor::read_rows may take up to 1 MiB of its own.
  constexpr int64_t kReaderBytes = int64_t{1} << 20;
  return piece_bytes(problem.v()) + kReaderBytes;
}

BoundValues::BoundValues(const AttentionProblem& problem, int64_t batch, int64_t head)
    : keys_(problem.num_keys()), width_(problem.v().width()) {
  const HeadTensor& v = problem.v();
  assert(v);
  const int64_t panels = ceil_div(width_, kValueChannels);
  data_.resize(static_cast<size_t>(panels * keys_ * kValueChannels));
  const int64_t step = piece_keys(v);
  std::vector<std::byte> stored(static_cast<size_t>(step * v.row_bytes()));
  std::vector<float> rows(static_cast<size_t>(step * width_));
  for (int64_t begin = 0; begin < keys_; begin += step) {
    const IndexRange piece{begin, std::min(begin + step, keys_)};
    v.read_rows(batch, problem.kv_head(head), piece, stored.data());
    to_floats(v.dtype(), stored.data(), piece.size() * width_, rows.data());
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t first = panel * kValueChannels;
      const int64_t count = std::min(kValueChannels, width_ - first);
      float* to = data_.data() + (panel * keys_ + begin) * kValueChannels;
      for (int64_t i = 0; i < piece.size(); ++i) {
        std::copy_n(rows.data() + i * width_ + first, count, to + i * kValueChannels);
      }
    }
  }
}

}  // namespace attnscope
