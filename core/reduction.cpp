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

/// Positive floats have the order of their bits: two levels of buckets by those.
constexpr int kCoarseShift = 20;  ///< exponent and 3 bits of the significand
constexpr int kFineShift = 9;
constexpr size_t kCoarseBuckets = size_t{1} << (31 - kCoarseShift);
constexpr size_t kFineBuckets = size_t{1} << (kCoarseShift - kFineShift);

size_t coarse_bucket(float weight) { return std::bit_cast<uint32_t>(weight) >> kCoarseShift; }
size_t fine_bucket(float weight) {
  return std::bit_cast<uint32_t>(weight) >> kFineShift & (kFineBuckets - 1);
}

/// Weights counted and added up by bucket.
class BucketSums {
 public:
  explicit BucketSums(size_t buckets) : buckets_(buckets) {}

  void add(size_t at, float weight) {
    buckets_[at].sum += static_cast<double>(weight);
    ++buckets_[at].count;
  }
  double total() const {
    double sum = 0;
    for (const Bucket& bucket : buckets_) sum += bucket.sum;
    return sum;
  }
  /// The bucket where the largest weights reach `missing`; takes the mass and number of those above
  /// it. The last bucket that holds anything where rounding lets none reach it.
  size_t descend(double& missing, int64_t& count) const {
    size_t last = 0;
    for (size_t at = buckets_.size(); at-- > 0;) {
      const Bucket& bucket = buckets_[at];
      if (bucket.count == 0) continue;
      last = at;
      if (bucket.sum >= missing) return at;
      missing -= bucket.sum;
      count += bucket.count;
    }
    count -= buckets_[last].count;
    missing += buckets_[last].sum;
    return last;
  }

 private:
  struct Bucket {
    double sum = 0;
    int64_t count = 0;
  };
  std::vector<Bucket> buckets_;
};

/// How many of the largest `weights` hold `mass`.
int64_t count_to(std::vector<float>& weights, double mass) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double sum = 0;
  int64_t count = 0;
  while (sum < mass && static_cast<size_t>(count) < weights.size()) {
    sum += static_cast<double>(weights[static_cast<size_t>(count++)]);
  }
  return count;
}

/// The same within one coarse bucket.
int64_t count_within(const std::vector<float>& weights, size_t coarse, double mass) {
  BucketSums fine(kFineBuckets);
  for (float weight : weights) {
    if (coarse_bucket(weight) == coarse) fine.add(fine_bucket(weight), weight);
  }
  int64_t count = 0;
  const size_t at = fine.descend(mass, count);
  std::vector<float> members;
  for (float weight : weights) {
    if (coarse_bucket(weight) == coarse && fine_bucket(weight) == at) members.push_back(weight);
  }
  return count + count_to(members, mass);
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
  std::vector<float> weights;
  weights.reserve(static_cast<size_t>(count));
  BucketSums coarse(kCoarseBuckets);
  for (int64_t key = 0; key < count; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (!(weight > 0)) continue;
    weights.push_back(weight);
    coarse.add(coarse_bucket(weight), weight);
  }
  const double total = coarse.total();
  KeyCounts counts{};
  for (size_t i = 0; i < kKeyShares.size() && !weights.empty(); ++i) {
    double missing = kKeyShares[i] * total;
    const size_t at = coarse.descend(missing, counts[i]);
    counts[i] += count_within(weights, at, missing);
  }
  return counts;
}

template PlaceMasses place_masses(const RowEntries<float>&, const TokenGrid&, LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, const TokenGrid&, LatentCoord,
                                  int64_t);
template KeyCounts count_keys(const RowEntries<float>&, int64_t);
template KeyCounts count_keys(const RowEntries<double>&, int64_t);

}  // namespace attnscope
