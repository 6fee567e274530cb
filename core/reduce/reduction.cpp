#include "core/reduce/reduction.h"

#include <algorithm>
#include <bit>
#include <functional>
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

/// Positive floats have the order of their bits: a bucket holds those with the same exponent and
/// the same five bits below it.
constexpr int kBucketShift = 18;
constexpr size_t kBuckets = size_t{1} << (31 - kBucketShift);

struct Bucket {
  int64_t count = 0;
  double mass = 0;
};

size_t bucket_of(float weight) { return std::bit_cast<uint32_t>(weight) >> kBucketShift; }

/// The weights of a bucket, the largest first.
template <typename Real>
std::vector<float> sorted_bucket(const RowEntries<Real>& row, int64_t count, size_t bucket,
                                 int64_t size) {
  std::vector<float> weights;
  weights.reserve(static_cast<size_t>(size));
  for (int64_t key = 0; key < count; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (weight > 0 && bucket_of(weight) == bucket) weights.push_back(weight);
  }
  std::sort(weights.begin(), weights.end(), std::greater<>());
  return weights;
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
  std::vector<Bucket> buckets(kBuckets);
  double total = 0;
  for (int64_t key = 0; key < count; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (!(weight > 0)) continue;
    Bucket& bucket = buckets[bucket_of(weight)];
    ++bucket.count;
    bucket.mass += static_cast<double>(weight);
    total += static_cast<double>(weight);
  }
  KeyCounts counts{};
  size_t share = 0;
  double sum = 0;
  int64_t taken = 0;
  // Only the buckets in which a share is reached are sorted.
  for (size_t b = kBuckets; b-- > 0 && share < counts.size();) {
    const Bucket& bucket = buckets[b];
    if (bucket.count == 0) continue;
    if (sum + bucket.mass >= kKeyShares[share] * total) {
      double inner = sum;
      int64_t inner_taken = taken;
      for (const float weight : sorted_bucket(row, count, b, bucket.count)) {
        inner += static_cast<double>(weight);
        ++inner_taken;
        while (share < counts.size() && inner >= kKeyShares[share] * total) {
          counts[share++] = inner_taken;
        }
      }
    }
    sum += bucket.mass;
    taken += bucket.count;
  }
  // Shares that rounding leaves open need every key.
  for (; share < counts.size(); ++share) counts[share] = taken;
  return counts;
}

template PlaceMasses place_masses(const RowEntries<float>&, const TokenGrid&, LatentCoord, int64_t);
template PlaceMasses place_masses(const RowEntries<double>&, const TokenGrid&, LatentCoord,
                                  int64_t);
template KeyCounts count_keys(const RowEntries<float>&, int64_t);
template KeyCounts count_keys(const RowEntries<double>&, int64_t);

}  // namespace attnscope
