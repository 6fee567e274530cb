#include "core/products/value_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The bin of a value, as a number: it may be beyond what integers hold until bins are wider.
double bin_of(double value, int exponent) { return std::floor(std::ldexp(value, -exponent)); }

/// From there on not every whole number is a double.
constexpr double kMostBin = 0x1p52;

}  // namespace

double ValueCounts::width() const { return std::ldexp(1.0, exponent_); }

double ValueCounts::edge(size_t i) const {
  return std::ldexp(static_cast<double>(first_ + static_cast<int64_t>(i)), exponent_);
}

void ValueCounts::widen(int exponent) {
  for (; exponent_ < exponent; ++exponent_) {
    // Rounded down: bins −1 and −2 become −1.
    const int64_t begin = first_ >> 1;
    std::vector<int64_t> wider;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto at = static_cast<size_t>(((first_ + static_cast<int64_t>(i)) >> 1) - begin);
      wider.resize(std::max(wider.size(), at + 1));
      wider[at] += counts_[i];
    }
    first_ = begin;
    counts_ = std::move(wider);
  }
}

/// Gives the bins of these two values, and those between, a place. They are finite, and no larger
/// than float32 holds, so that bins of 2^128 do at the latest.
void ValueCounts::reach(double low, double high) {
  if (!counts_.empty()) {
    low = std::min(low, edge(0));
    // The last bin's beginning is in it.
    high = std::max(high, edge(counts_.size() - 1));
  }
  int exponent = exponent_;
  while (bin_of(high, exponent) - bin_of(low, exponent) >= static_cast<double>(kMostBins) ||
         std::max(std::abs(bin_of(low, exponent)), std::abs(bin_of(high, exponent))) >= kMostBin) {
    ++exponent;
  }
  if (counts_.empty()) {
    exponent_ = exponent;
    first_ = static_cast<int64_t>(bin_of(low, exponent));
  }
  widen(exponent);
  const auto begin = static_cast<int64_t>(bin_of(low, exponent));
  const auto end = static_cast<int64_t>(bin_of(high, exponent)) + 1;
  if (begin < first_) counts_.insert(counts_.begin(), static_cast<size_t>(first_ - begin), 0);
  first_ = std::min(first_, begin);
  counts_.resize(std::max(counts_.size(), static_cast<size_t>(end - first_)));
}

void ValueCounts::add(std::span<const float> values, float least) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  int64_t masked = 0;
  for (const float value : values) {
    if (value < least) {
      ++masked;
      continue;
    }
    if (!std::isfinite(value)) throw Error(ErrorCode::value, "a value to be counted is not finite");
    low = std::min(low, value);
    high = std::max(high, value);
  }
  masked_ += masked;
  const auto finite = static_cast<int64_t>(values.size()) - masked;
  if (finite == 0) return;
  total_ += finite;
  reach(double{low}, double{high});
  const double scale = std::ldexp(1.0, -exponent_);
  for (const float value : values) {
    if (value < least) continue;
    const auto bin = static_cast<int64_t>(std::floor(double{value} * scale));
    ++counts_[static_cast<size_t>(bin - first_)];
  }
}

void ValueCounts::add(const ValueCounts& other) {
  masked_ += other.masked_;
  if (other.counts_.empty()) return;
  total_ += other.total_;
  ValueCounts wider = other;
  wider.widen(exponent_);
  if (counts_.empty()) {
    first_ = wider.first_;
    exponent_ = wider.exponent_;
  }
  reach(wider.edge(0), wider.edge(wider.counts_.size() - 1));
  wider.widen(exponent_);
  for (size_t i = 0; i < wider.counts_.size(); ++i) {
    counts_[static_cast<size_t>(wider.first_ + static_cast<int64_t>(i) - first_)] +=
        wider.counts_[i];
  }
}

}  // namespace attnscope
