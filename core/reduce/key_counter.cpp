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
  return static_cast<int64_t>(kBuckets * sizeof(Bucket)) + keys * 8;
}

template <typename Real>
void KeyCounter::take_weights(const RowEntries<Real>& row, int64_t keys) {
  weights_.resize(static_cast<size_t>(keys));
  for (int64_t key = 0; key < keys; ++key) {
    weights_[static_cast<size_t>(key)] = static_cast<float>(row[key]);
  }
}

void KeyCounter::fill_buckets() {
  buckets_.resize(kBuckets);
  lowest_ = kBuckets;
  highest_ = 0;
  for (const float weight : weights_) {
    if (!(weight > 0)) continue;
    const size_t place = bucket_of(weight);
    lowest_ = std::min(lowest_, place);
    highest_ = std::max(highest_, place);
    Bucket& bucket = buckets_[place];
    ++bucket.count;
    bucket.mass += static_cast<double>(weight);
  }
}

KeyCounter::Reached KeyCounter::reached_buckets() const {
  double total = 0;
  for (size_t b = highest_ + 1; b-- > lowest_;) total += buckets_[b].mass;
  Reached reached;
  size_t share = 0;
  Heavier heavier;
  for (size_t b = highest_ + 1; b-- > lowest_ && share < kKeyShares.size();) {
    const double with = heavier.mass + buckets_[b].mass;
    while (share < kKeyShares.size() && with >= kKeyShares[share] * total) {
      reached[share] = {b, kKeyShares[share] * total, heavier};
      ++share;
    }
    heavier = {heavier.count + buckets_[b].count, with};
  }
  // Shares that rounding leaves open need every key.
  for (; share < kKeyShares.size(); ++share) reached[share] = {kBuckets, 0, heavier};
  return reached;
}

void KeyCounter::sort_reached(const Reached& reached) {
  sorted_.clear();
  sorted_.reserve(weights_.size());
  for (const float weight : weights_) {
    if (!(weight > 0)) continue;
    const size_t place = bucket_of(weight);
    const bool is_wanted = std::any_of(reached.begin(), reached.end(),
                                       [&](const ReachedShare& r) { return r.bucket == place; });
    if (is_wanted) sorted_.push_back(weight);
  }
  std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
}

template <typename Real>
KeyCounts KeyCounter::count(const RowEntries<Real>& row, int64_t keys) {
  take_weights(row, keys);
  fill_buckets();
  if (lowest_ == kBuckets) return {};
  const Reached reached = reached_buckets();
  sort_reached(reached);
  KeyCounts counts{};
  for (size_t share = 0; share < counts.size(); ++share) {
    const ReachedShare& of_share = reached[share];
    Heavier sum = of_share.heavier;
    // Buckets have the order of their weights.
    const auto first = std::find_if(sorted_.begin(), sorted_.end(), [&](float weight) {
      return bucket_of(weight) == of_share.bucket;
    });
    for (auto weight = first; weight != sorted_.end() && bucket_of(*weight) == of_share.bucket &&
                              sum.mass < of_share.mass;
         ++weight) {
      sum = {sum.count + 1, sum.mass + static_cast<double>(*weight)};
    }
    counts[share] = sum.count;
  }
  std::fill(&buckets_[lowest_], &buckets_[highest_] + 1, Bucket());
  return counts;
}

template KeyCounts KeyCounter::count(const RowEntries<float>&, int64_t);
template KeyCounts KeyCounter::count(const RowEntries<double>&, int64_t);

}  // namespace attnscope
