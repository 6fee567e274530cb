#include "core/mask/mask_keys.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// The class of a tile in which `kept` of `total` entries may be attended to.
TileClass class_of(int64_t kept, int64_t total) {
  return kept == 0 ? TileClass::empty : kept == total ? TileClass::full : TileClass::mixed;
}

void check_items(size_t items, int64_t batch, const char* what) {
  if (items == 1 || static_cast<int64_t>(items) == batch) return;
  throw usage_error(std::string(what) + " mask: has " + std::to_string(items) +
                    " lists, expected 1 or one for each of " + std::to_string(batch) +
                    " batch items");
}

void check_extent(int64_t got, int64_t expected, const char* what, const char* axis) {
  if (got == expected) return;
  throw usage_error(std::string(what) + " mask: covers " + std::to_string(got) + " " + axis +
                    ", but the problem has " + std::to_string(expected));
}

/// Keys chosen one by one, for each batch item.
class KeysTerm : public MaskTerm {
 public:
  explicit KeysTerm(std::vector<std::vector<uint8_t>> valid) : valid_(std::move(valid)) {
    for (const auto& item : valid_) {
      std::vector<int64_t>& before = kept_before_.emplace_back();
      before.reserve(item.size() + 1);
      before.push_back(0);
      for (uint8_t key : item) before.push_back(before.back() + (key != 0 ? 1 : 0));
    }
  }

  TileClass classify(int64_t batch, int64_t, IndexRange, IndexRange keys) const override {
    const auto& before = kept_before_[item_of(batch)];
    const int64_t kept =
        before[static_cast<size_t>(keys.end)] - before[static_cast<size_t>(keys.begin)];
    return class_of(kept, keys.size());
  }

  void add_bias(int64_t batch, int64_t, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const uint8_t* valid = valid_[item_of(batch)].data() + keys.begin;
    for (size_t row = 0; row < queries.size(); ++row, out += row_stride) {
      for (int64_t c = 0; c < keys.size(); ++c) out[c] = valid[c] != 0 ? out[c] : kMasked;
    }
  }

  std::string describe() const override { return "keys"; }

  void check_shape(int64_t batch, int64_t, int64_t, int64_t keys) const override {
    check_items(valid_.size(), batch, "key");
    for (const auto& item : valid_) {
      check_extent(static_cast<int64_t>(item.size()), keys, "key", "keys");
    }
  }

 private:
  size_t item_of(int64_t batch) const {
    return valid_.size() == 1 ? size_t{0} : static_cast<size_t>(batch);
  }
  std::vector<std::vector<uint8_t>> valid_;
  /// [batch item][j]: how many of the keys before j may be attended to.
  std::vector<std::vector<int64_t>> kept_before_;
};

/// The first keys of each batch item.
class KeyLengthsTerm : public MaskTerm {
 public:
  KeyLengthsTerm(std::vector<int64_t> lengths, int64_t num_keys)
      : lengths_(std::move(lengths)), num_keys_(num_keys) {}

  TileClass classify(int64_t batch, int64_t, IndexRange, IndexRange keys) const override {
    return class_of(intersect(keys, {0, length_of(batch)}).size(), keys.size());
  }

  void add_bias(int64_t batch, int64_t, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const int64_t kept = intersect(keys, {0, length_of(batch)}).size();
    for (size_t row = 0; row < queries.size(); ++row, out += row_stride) {
      std::fill(out + kept, out + keys.size(), kMasked);
    }
  }

  std::string describe() const override {
    std::string text = "key_lengths:";
    for (size_t i = 0; i < lengths_.size(); ++i) {
      if (i > 0) text += ",";
      text += std::to_string(lengths_[i]);
    }
    return text;
  }

  void check_shape(int64_t batch, int64_t, int64_t, int64_t keys) const override {
    check_items(lengths_.size(), batch, "key length");
    check_extent(num_keys_, keys, "key length", "keys");
  }

 private:
  int64_t length_of(int64_t batch) const {
    return lengths_[lengths_.size() == 1 ? size_t{0} : static_cast<size_t>(batch)];
  }
  const std::vector<int64_t> lengths_;
  const int64_t num_keys_;
};

/// A run of keys.
class KeyRangeTerm : public MaskTerm {
 public:
  KeyRangeTerm(IndexRange range, int64_t num_keys) : range_(range), num_keys_(num_keys) {}

  TileClass classify(int64_t, int64_t, IndexRange, IndexRange keys) const override {
    return class_of(intersect(keys, range_).size(), keys.size());
  }

  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    const int64_t begin = std::clamp(range_.begin, keys.begin, keys.end) - keys.begin;
    const int64_t end = std::clamp(range_.end, keys.begin, keys.end) - keys.begin;
    for (size_t row = 0; row < queries.size(); ++row, out += row_stride) {
      std::fill(out, out + begin, kMasked);
      std::fill(out + end, out + keys.size(), kMasked);
    }
  }

  std::string describe() const override {
    return "key_range:" + std::to_string(range_.begin) + "-" + std::to_string(range_.end);
  }

  void check_shape(int64_t, int64_t, int64_t, int64_t keys) const override {
    check_extent(num_keys_, keys, "key range", "keys");
  }

 private:
  const IndexRange range_;
  const int64_t num_keys_;
};

/// Packed sequences of variable length.
class SegmentsTerm : public MaskTerm {
 public:
  SegmentsTerm(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys)
      : cu_queries_(std::move(cu_queries)), cu_keys_(std::move(cu_keys)) {}

  TileClass classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const override {
    const size_t first = segment_of(queries.begin);
    const size_t last = segment_of(queries.end - 1);
    const IndexRange span{cu_keys_[first], cu_keys_[last + 1]};
    const int64_t kept = intersect(keys, span).size();
    if (first == last) return class_of(kept, keys.size());
    return kept == 0 ? TileClass::empty : TileClass::mixed;
  }

  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    for (int64_t query : queries) {
      const size_t segment = segment_of(query);
      const IndexRange kept = intersect(keys, {cu_keys_[segment], cu_keys_[segment + 1]});
      std::fill(out, out + (kept.empty() ? keys.size() : kept.begin - keys.begin), kMasked);
      if (!kept.empty()) std::fill(out + (kept.end - keys.begin), out + keys.size(), kMasked);
      out += row_stride;
    }
  }

  std::string describe() const override {
    return "segments:" + std::to_string(cu_queries_.size() - 1) + ":" + digest();
  }

  void check_shape(int64_t, int64_t, int64_t queries, int64_t keys) const override {
    check_extent(cu_queries_.back(), queries, "segment", "queries");
    check_extent(cu_keys_.back(), keys, "segment", "keys");
  }

 private:
  /// FNV-1a over both lists: two masks with one name are the same.
  std::string digest() const {
    uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](int64_t value) {
      for (int shift = 0; shift < 64; shift += 8) {
        hash = (hash ^ (static_cast<uint64_t>(value) >> shift & 0xff)) * 0x100000001b3;
      }
    };
    for (const int64_t start : cu_queries_) add(start);
    for (const int64_t start : cu_keys_) add(start);
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15];
    return text;
  }
  /// The last segment that starts at or before the query: the one that holds it, since segments
  /// without queries share their start with the next.
  size_t segment_of(int64_t query) const {
    const auto after = std::upper_bound(cu_queries_.begin(), cu_queries_.end(), query);
    return static_cast<size_t>(after - cu_queries_.begin()) - 1;
  }
  const std::vector<int64_t> cu_queries_, cu_keys_;
};

void check_cumulative(const std::vector<int64_t>& starts, const char* what) {
  const bool good =
      starts.size() >= 2 && starts.front() == 0 && std::is_sorted(starts.begin(), starts.end());
  if (!good) {
    throw usage_error(std::string("segment mask: the starts of the ") + what +
                      " must begin with 0, never fall, and end with the sequence's length");
  }
}

}  // namespace

MaskTermPtr keys_term(std::vector<std::vector<uint8_t>> valid) {
  if (valid.empty()) throw usage_error("key mask: has no list of keys");
  return std::make_shared<KeysTerm>(std::move(valid));
}

MaskTermPtr key_lengths_term(std::vector<int64_t> lengths, int64_t num_keys) {
  if (lengths.empty()) throw usage_error("key length mask: has no length");
  for (int64_t length : lengths) {
    if (length >= 0 && length <= num_keys) continue;
    throw usage_error("key length mask: length " + std::to_string(length) + " is outside 0 to " +
                      std::to_string(num_keys));
  }
  return std::make_shared<KeyLengthsTerm>(std::move(lengths), num_keys);
}

MaskTermPtr key_range_term(IndexRange range, int64_t num_keys) {
  if (range.begin < 0 || range.empty() || range.end > num_keys) {
    throw usage_error("key range mask: " + std::to_string(range.begin) + " to " +
                      std::to_string(range.end) + " is no range within 0 to " +
                      std::to_string(num_keys));
  }
  return std::make_shared<KeyRangeTerm>(range, num_keys);
}

MaskTermPtr segments_term(std::vector<int64_t> cu_queries, std::vector<int64_t> cu_keys) {
  check_cumulative(cu_queries, "queries");
  check_cumulative(cu_keys, "keys");
  if (cu_queries.size() != cu_keys.size()) {
    throw usage_error("segment mask: " + std::to_string(cu_queries.size() - 1) +
                      " segments of queries but " + std::to_string(cu_keys.size() - 1) +
                      " of keys");
  }
  return std::make_shared<SegmentsTerm>(std::move(cu_queries), std::move(cu_keys));
}

}  // namespace attnscope
