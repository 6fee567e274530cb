#include "core/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

namespace attnscope {
namespace {

/// Σ over a box of the grid, cut off at its edges.
template <typename Real>
double box_mass(const RowEntries<Real>& row, const TokenGrid& keys, IndexRange frames,
                IndexRange lines, IndexRange columns) {
  const int64_t first = keys.video_range().begin;
  const IndexRange t_range = intersect(frames, {0, keys.frames()});
  const IndexRange y_range = intersect(lines, {0, keys.height()});
  const IndexRange x_range = intersect(columns, {0, keys.width()});
  double mass = 0;
  for (int64_t t = t_range.begin; t < t_range.end; ++t) {
    for (int64_t y = y_range.begin; y < y_range.end; ++y) {
      const Real* line = row.entries + first + (t * keys.height() + y) * keys.width();
      double sum = 0;
      for (int64_t x = x_range.begin; x < x_range.end; ++x) sum += static_cast<double>(line[x]);
      mass += sum;
    }
  }
  return mass * row.factor;
}

IndexRange around(int64_t place, int64_t reach) { return {place - reach, place + reach + 1}; }

/// Digits of a radix sort: positive floats have the order of their bits. 256 places to write to at
/// a time stay in the cache.
constexpr int kDigitBits = 8;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr int kPasses = 4;

/// Sorts the bits of positive floats, the largest first.
void sort_descending(std::vector<uint32_t>& bits) {
  std::array<std::array<uint32_t, kDigits>, kPasses> starts{};
  const auto digit = [](uint32_t value, int pass) {
    return (~value >> (pass * kDigitBits)) & (kDigits - 1);
  };
  for (const uint32_t value : bits) {
    for (int pass = 0; pass < kPasses; ++pass) {
      ++starts[static_cast<size_t>(pass)][digit(value, pass)];
    }
  }
  std::vector<uint32_t> sorted(bits.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& start = starts[static_cast<size_t>(pass)];
    // Weights are all much alike in their upper bits.
    if (!bits.empty() && start[digit(bits[0], pass)] == bits.size()) continue;
    uint32_t sum = 0;
    for (uint32_t& count : start) sum += std::exchange(count, sum);
    for (const uint32_t value : bits) sorted[start[digit(value, pass)]++] = value;
    bits.swap(sorted);
  }
}

}  // namespace

int64_t default_band(const TokenGrid& grid) {
  int64_t band = 0;
  const auto keys = [&](int64_t b) { return grid.frames() * (2 * b + 1) * (2 * b + 1); };
  while (grid.has_grid() && keys(band + 1) <= grid.height() * grid.width()) ++band;
  return band;
}

template <typename Real>
PlaceMasses place_masses(const RowEntries<Real>& row, const TokenGrid& keys, LatentCoord place,
                         int64_t band) {
  const IndexRange all{0, keys.frames()};
  const IndexRange y{place.y, place.y + 1};
  const IndexRange x{place.x, place.x + 1};
  PlaceMasses masses;
  masses.same_position = box_mass(row, keys, {0, place.t}, y, x) +
                         box_mass(row, keys, {place.t + 1, keys.frames()}, y, x);
  masses.band = box_mass(row, keys, all, around(place.y, band), around(place.x, band));
  masses.local = box_mass(row, keys, around(place.t, 1), around(place.y, 2), around(place.x, 2));
  return masses;
}

template <typename Real>
KeyCounts count_keys(const RowEntries<Real>& row, int64_t count) {
  std::vector<uint32_t> bits;
  bits.reserve(static_cast<size_t>(count));
  double total = 0;
  for (int64_t key = 0; key < count; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (!(weight > 0)) continue;
    bits.push_back(std::bit_cast<uint32_t>(weight));
    total += static_cast<double>(weight);
  }
  sort_descending(bits);
  KeyCounts counts{};
  double sum = 0;
  size_t taken = 0;
  for (size_t i = 0; i < kKeyShares.size(); ++i) {
    while (taken < bits.size() && sum < kKeyShares[i] * total) {
      sum += static_cast<double>(std::bit_cast<float>(bits[taken++]));
    }
    counts[i] = static_cast<int64_t>(taken);
  }
  return counts;
}

template PlaceMasses place_masses(const RowEntries<float>&, const TokenGrid&, LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, const TokenGrid&, LatentCoord,
                                  int64_t);
template KeyCounts count_keys(const RowEntries<float>&, int64_t);
template KeyCounts count_keys(const RowEntries<double>&, int64_t);

}  // namespace attnscope
