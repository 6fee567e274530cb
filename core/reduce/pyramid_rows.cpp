#include "core/reduce/pyramid_rows.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace attnscope {

int64_t PyramidRows::levels(int64_t rows, int64_t cols, int64_t block) {
  int64_t count = 1;
  for (int64_t shorter = ceil_div(std::min(rows, cols), block); shorter > 1;
       shorter = ceil_div(shorter, 2)) {
    ++count;
  }
  return count;
}

PyramidRows::PyramidRows(int64_t rows, int64_t cols, int64_t block, bool all_levels, Emit emit)
    : rows_(rows),
      cols_(cols),
      block_(block),
      levels_(all_levels ? levels(rows, cols, block) : 1),
      emit_(std::move(emit)) {}

void PyramidRows::add(int64_t row, std::span<const float> max, std::span<const double> sum) {
  const std::lock_guard lock(mutex_);
  take(0, row, {{max.begin(), max.end()}, {sum.begin(), sum.end()}});
}

void PyramidRows::take(int64_t level, int64_t row, const Row& blocks) {
  const int64_t block = block_ << level;
  const int64_t height = std::min(block, rows_ - row * block);
  std::vector<float> mean;
  mean.reserve(blocks.sum.size());
  for (size_t i = 0; i < blocks.sum.size(); ++i) {
    const int64_t width = std::min(block, cols_ - static_cast<int64_t>(i) * block);
    mean.push_back(static_cast<float>(blocks.sum[i] / static_cast<double>(height * width)));
  }
  emit_(level, row, blocks.max, mean);
  if (level + 1 == levels_) return;
  Row coarse{std::vector<float>((blocks.max.size() + 1) / 2),
             std::vector<double>((blocks.max.size() + 1) / 2)};
  for (size_t i = 0; i < blocks.max.size(); ++i) {
    coarse.max[i / 2] = std::max(coarse.max[i / 2], blocks.max[i]);
    coarse.sum[i / 2] += blocks.sum[i];
  }
  const bool alone = row % 2 == 0 && (row + 1) * block >= rows_;
  auto partner = waiting_.find({level + 1, row / 2});
  if (!alone && partner == waiting_.end()) {
    waiting_.emplace(std::pair(level + 1, row / 2), std::move(coarse));
    return;
  }
  if (!alone) {
    for (size_t i = 0; i < coarse.max.size(); ++i) {
      coarse.max[i] = std::max(coarse.max[i], partner->second.max[i]);
      coarse.sum[i] += partner->second.sum[i];
    }
    waiting_.erase(partner);
  }
  take(level + 1, row / 2, coarse);
}

}  // namespace attnscope
