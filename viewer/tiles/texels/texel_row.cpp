#include "viewer/tiles/texels/texel_row.h"

#include <algorithm>
#include <cmath>

#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// Lanes that a compiler may hold in vectors.
constexpr int64_t kLanes = 8;
/// Entries that are added in float32 before they are taken in double: 32 a lane.
constexpr int64_t kRun = 32 * kLanes;

struct Totals {
  float max = kMasked;
  double sum = 0;
  int64_t count = 0;
};

/// Whole multiples of kLanes, at most kRun entries.
template <bool kLogits>
void add_run(const float* values, int64_t entries, Totals& totals) {
  float maxima[kLanes];
  float sums[kLanes] = {};
  int32_t counts[kLanes] = {};
  std::fill(maxima, maxima + kLanes, kMasked);
  for (int64_t i = 0; i < entries; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      maxima[lane] = maxima[lane] < value ? value : maxima[lane];
      if constexpr (kLogits) {
        sums[lane] += value > kMasked ? value : 0.0f;
        counts[lane] += value > kMasked ? 1 : 0;
      } else {
        sums[lane] += value;
      }
    }
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    totals.max = std::max(totals.max, maxima[lane]);
    totals.sum += static_cast<double>(sums[lane]);
    totals.count += counts[lane];
  }
}

/// Of differences: what is largest in size; −inf is left out.
Totals signed_totals_of(const float* values, int64_t entries) {
  Totals totals;
  float largest = -1;
  for (int64_t i = 0; i < entries; i += kRun) {
    float sum = 0;
    for (int64_t j = i; j < std::min(entries, i + kRun); ++j) {
      const float value = values[j];
      if (value == kMasked) continue;
      sum += value;
      ++totals.count;
      if (std::abs(value) <= largest) continue;
      largest = std::abs(value);
      totals.max = value;
    }
    totals.sum += static_cast<double>(sum);
  }
  return totals;
}

template <bool kLogits>
Totals totals_of(const float* values, int64_t entries) {
  Totals totals;
  const int64_t whole = entries / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kRun) {
    add_run<kLogits>(values + i, std::min(kRun, whole - i), totals);
  }
  for (int64_t i = whole; i < entries; ++i) {
    totals.max = std::max(totals.max, values[i]);
    if (kLogits && !(values[i] > kMasked)) continue;
    totals.sum += static_cast<double>(values[i]);
    ++totals.count;
  }
  return totals;
}

}  // namespace

float larger_in_size(float a, float b) {
  if (a == kMasked || b == kMasked) return std::max(a, b);
  return std::abs(a) >= std::abs(b) ? a : b;
}

TexelRow::TexelRow(int64_t texels, Quantity quantity)
    : max(static_cast<size_t>(texels), quantity == Quantity::logits ? kMasked : 0.0f),
      sum(static_cast<size_t>(texels), 0.0),
      count(quantity == Quantity::logits ? static_cast<size_t>(texels) : 0, 0) {}

TexelRow TexelRow::of_differences(int64_t texels) {
  TexelRow row(texels, Quantity::logits);
  row.by_size = true;
  return row;
}

void TexelRow::add(const float* row, int64_t entries, int64_t width, int64_t first) {
  auto texel = static_cast<size_t>(first);
  for (int64_t begin = 0; begin < entries; begin += width, ++texel) {
    const int64_t size = std::min(width, entries - begin);
    const Totals totals = by_size         ? signed_totals_of(row + begin, size)
                          : count.empty() ? totals_of<false>(row + begin, size)
                                          : totals_of<true>(row + begin, size);
    max[texel] =
        by_size ? larger_in_size(max[texel], totals.max) : std::max(max[texel], totals.max);
    sum[texel] += totals.sum;
    if (!count.empty()) count[texel] += totals.count;
  }
}

void TexelRow::add(const TexelRow& other) {
  for (size_t i = 0; i < max.size(); ++i) {
    max[i] = by_size ? larger_in_size(max[i], other.max[i]) : std::max(max[i], other.max[i]);
    sum[i] += other.sum[i];
  }
  for (size_t i = 0; i < count.size(); ++i) count[i] += other.count[i];
}

TexelRow TexelRow::halved() const {
  TexelRow coarse(static_cast<int64_t>((max.size() + 1) / 2),
                  count.empty() ? Quantity::weights : Quantity::logits);
  coarse.by_size = by_size;
  for (size_t i = 0; i < max.size(); ++i) {
    float& most = coarse.max[i / 2];
    most = by_size ? larger_in_size(most, max[i]) : std::max(most, max[i]);
    coarse.sum[i / 2] += sum[i];
    if (!count.empty()) coarse.count[i / 2] += count[i];
  }
  return coarse;
}

float TexelRow::mean(int64_t i, int64_t entries) const {
  const auto texel = static_cast<size_t>(i);
  if (!count.empty()) entries = count[texel];
  return entries > 0 ? static_cast<float>(sum[texel] / static_cast<double>(entries)) : kMasked;
}

}  // namespace attnscope
