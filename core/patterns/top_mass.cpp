#include "core/patterns/top_mass.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>

namespace attnscope {
namespace {

/// Of the pattern of 1.0f, without the lower 16 bits; positive floats order like their patterns.
constexpr uint32_t kLastBin = 0x3f80;

size_t bin_of(float weight) { return std::min(std::bit_cast<uint32_t>(weight) >> 16, kLastBin); }

}  // namespace

TopMass::TopMass() : bins_(kLastBin + 1) {}

void TopMass::set_row(std::span<const float> row) {
  row_ = row;
  std::fill(bins_.begin(), bins_.end(), Bin());
  for (float weight : row) {
    Bin& bin = bins_[bin_of(weight)];
    ++bin.count;
    bin.sum += double{weight};
  }
}

double TopMass::largest(int64_t count) {
  assert(count >= 0 && count <= static_cast<int64_t>(row_.size()));
  double sum = 0;
  size_t bin = kLastBin;
  for (; count >= bins_[bin].count; --bin) {
    count -= bins_[bin].count;
    sum += bins_[bin].sum;
    if (bin == 0) return sum;
  }
  if (count == 0 || bin == 0) return sum;
  selected_.clear();
  for (float weight : row_) {
    if (bin_of(weight) == bin) selected_.push_back(weight);
  }
  const auto past = selected_.begin() + count;
  std::nth_element(selected_.begin(), past, selected_.end(), std::greater<>());
  // The order that nth_element leaves is the library's own affair.
  std::sort(selected_.begin(), past, std::greater<>());
  for (auto weight = selected_.begin(); weight != past; ++weight) sum += double{*weight};
  return sum;
}

}  // namespace attnscope
