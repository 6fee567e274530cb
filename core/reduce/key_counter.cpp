#include "core/reduce/key_counter.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace attnscope {
namespace {

/// Positive floats have the order of their bits: a bucket holds those with the same exponent and
/// the same five bits below it.
constexpr int kBucketShift = 18;
constexpr size_t kBuckets = size_t{1} << (31 - kBucketShift);

size_t bucket_of(float weight) { return std::bit_cast<uint32_t>(weight) >> kBucketShift; }

}  // namespace

int64_t KeyCounter::bytes(int64_t keys) {
  // At the worst all weights of a row are in one bucket.
  return static_cast<int64_t>(kBuckets * sizeof(Bucket)) + keys * 4;
}

/// The weights of a bucket, the largest first.
template <typename Real>
void KeyCounter::sort_bucket(const RowEntries<Real>& row, int64_t keys, size_t bucket) {
  sorted_.clear();
  for (int64_t key = 0; key < keys; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (weight > 0 && bucket_of(weight) == bucket) sorted_.push_back(weight);
  }
  std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
}

template <typename Real>
KeyCounts KeyCounter::count(const RowEntries<Real>& row, int64_t keys) {
  buckets_.resize(kBuckets);
  sorted_.reserve(static_cast<size_t>(keys));
  // Short rows touch few buckets: none but those from the lowest to the highest are looked at.
  size_t lowest = kBuckets;
  size_t highest = 0;
  double total = 0;
  for (int64_t key = 0; key < keys; ++key) {
    const auto weight = static_cast<float>(row[key]);
    if (!(weight > 0)) continue;
    const size_t place = bucket_of(weight);
    lowest = std::min(lowest, place);
    highest = std::max(highest, place);
    Bucket& bucket = buckets_[place];
    ++bucket.count;
    bucket.mass += static_cast<double>(weight);
    total += static_cast<double>(weight);
  }
  KeyCounts counts{};
  size_t share = 0;
  double sum = 0;
  int64_t taken = 0;
  // Only the buckets in which a share is reached are sorted.
  for (size_t b = highest + 1; b-- > lowest && share < counts.size();) {
    const Bucket& bucket = buckets_[b];
    if (bucket.count == 0) continue;
    if (sum + bucket.mass >= kKeyShares[share] * total) {
      double inner = sum;
      int64_t inner_taken = taken;
      sort_bucket(row, keys, b);
      for (const float weight : sorted_) {
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
  if (lowest < kBuckets) std::fill(&buckets_[lowest], &buckets_[highest] + 1, Bucket());
  return counts;
}

template KeyCounts KeyCounter::count(const RowEntries<float>&, int64_t);
template KeyCounts KeyCounter::count(const RowEntries<double>&, int64_t);

}  // namespace attnscope
