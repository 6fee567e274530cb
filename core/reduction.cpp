#include "core/reduction.h"

#include <algorithm>
#include <bit>
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

/// Weights that are not 0, sorted into buckets by their upper bits: sign, exponent and 5 bits of
/// the significand. The order of positive floats is that of their bits.
constexpr int kBucketShift = 18;
constexpr size_t kBuckets = size_t{1} << (31 - kBucketShift);

struct WeightHistogram {
  std::vector<float> weights;
  std::vector<double> sums = std::vector<double>(kBuckets);
  std::vector<int64_t> counts = std::vector<int64_t>(kBuckets);
  double total = 0;

  static size_t bucket(float weight) { return std::bit_cast<uint32_t>(weight) >> kBucketShift; }

  void add(float weight) {
    weights.push_back(weight);
    const size_t at = bucket(weight);
    sums[at] += static_cast<double>(weight);
    ++counts[at];
  }

  /// How many of the largest weights of a bucket reach `mass`.
  int64_t count_within(size_t at, double mass) const {
    std::vector<float> members;
    for (float weight : weights) {
      if (bucket(weight) == at) members.push_back(weight);
    }
    std::sort(members.begin(), members.end(), std::greater<>());
    double sum = 0;
    int64_t count = 0;
    for (float weight : members) {
      if (sum >= mass) break;
      sum += static_cast<double>(weight);
      ++count;
    }
    return count;
  }
};

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
  WeightHistogram histogram;
  histogram.weights.reserve(static_cast<size_t>(count));
  for (int64_t key = 0; key < count; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (weight > 0) histogram.add(weight);
  }
  for (double sum : histogram.sums) histogram.total += sum;
  KeyCounts counts{};
  for (size_t i = 0; i < kKeyShares.size(); ++i) {
    double missing = kKeyShares[i] * histogram.total;
    for (size_t at = kBuckets; at-- > 0 && missing > 0;) {
      if (histogram.sums[at] < missing) {
        missing -= histogram.sums[at];
        counts[i] += histogram.counts[at];
        continue;
      }
      counts[i] += histogram.count_within(at, missing);
      break;
    }
  }
  return counts;
}

template PlaceMasses place_masses(const RowEntries<float>&, const TokenGrid&, LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, const TokenGrid&, LatentCoord,
                                  int64_t);
template KeyCounts count_keys(const RowEntries<float>&, int64_t);
template KeyCounts count_keys(const RowEntries<double>&, int64_t);

}  // namespace attnscope
