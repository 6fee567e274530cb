#include "core/products/row_mean.h"

#include <cassert>
#include <utility>

#include "core/mask/masked_bias.h"

namespace attnscope {

RowSums::RowSums(int64_t entries, Quantity quantity)
    : sums_(static_cast<size_t>(entries), 0.0),
      counts_(quantity == Quantity::logits ? sums_.size() : 0, 0) {}

void RowSums::add(std::span<const float> row) {
  assert(row.size() == sums_.size());
  if (counts_.empty()) {
    for (size_t i = 0; i < row.size(); ++i) sums_[i] += static_cast<double>(row[i]);
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == kMasked) continue;
    sums_[i] += static_cast<double>(row[i]);
    ++counts_[i];
  }
}

void RowSums::add(const RowSums& next) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += next.sums_[i];
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += next.counts_[i];
}

std::vector<float> RowSums::mean(int64_t rows) const {
  std::vector<float> mean(sums_.size());
  if (counts_.empty()) {
    const double factor = 1.0 / static_cast<double>(rows);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(sums_[i] * factor);
    return mean;
  }
  for (size_t i = 0; i < mean.size(); ++i) {
    mean[i] =
        counts_[i] == 0 ? kMasked : static_cast<float>(sums_[i] / static_cast<double>(counts_[i]));
  }
  return mean;
}

void RowMean::add(int64_t group, RowSums sums) {
  waiting_.emplace(group, std::move(sums));
  for (auto next = waiting_.find(added_); next != waiting_.end(); next = waiting_.find(added_)) {
    if (added_ == 0) {
      sums_ = std::move(next->second);
    } else {
      sums_.add(next->second);
    }
    waiting_.erase(next);
    ++added_;
  }
}

std::vector<float> RowMean::take() {
  assert(complete());
  std::vector<float> mean = sums_.mean(rows_);
  sums_ = {};
  return mean;
}

std::vector<float> RowMean::take_sum() {
  assert(complete());
  std::vector<float> sum = sums_.mean(1);
  sums_ = {};
  return sum;
}

}  // namespace attnscope
