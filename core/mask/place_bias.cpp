#include "core/mask/place_bias.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// A bias told by numbers a head.
class PlaceBiasTerm : public MaskTerm {
 public:
  /// `may_mask`: numbers from kMaskedBias down do, which −inf may be.
  PlaceBiasTerm(std::string name, std::string number_name, HeadNumbers numbers, bool may_mask)
      : numbers_(std::move(numbers)),
        name_(std::move(name)),
        number_name_(std::move(number_name)),
        may_mask_(may_mask),
        heads_(static_cast<size_t>(numbers_.shape[0] * numbers_.shape[1])) {
    if (numbers_.read) return;
    for (size_t place = 0; place < heads_.size(); ++place) read(place);
  }

  TileClass classify(int64_t batch, int64_t head, IndexRange, IndexRange) const override {
    return read(place_of(batch, head)).none ? TileClass::full : TileClass::mixed;
  }
  bool has_finite_bias() const override { return true; }
  std::string describe() const override { return name_; }

  std::string identity() const override {
    // FNV-1a of the numbers' bits: a table of them is too long for a text.
    uint64_t digest = 0xcbf29ce484222325;
    for (size_t place = 0; place < heads_.size(); ++place) {
      for (const float number : read(place).numbers) {
        digest = (digest ^ std::bit_cast<uint32_t>(number)) * 0x100000001b3;
      }
    }
    std::string text = name_;
    for (const int64_t extent : numbers_.shape) text += " " + std::to_string(extent);
    return text + " " + std::to_string(digest);
  }

  void check_shape(int64_t batch, int64_t heads, int64_t, int64_t) const override {
    const std::array<int64_t, 2> call{batch, heads};
    for (size_t axis = 0; axis < call.size(); ++axis) {
      if (numbers_.shape[axis] == 1 || numbers_.shape[axis] == call[axis]) continue;
      throw usage_error(name_ + " of " + std::to_string(numbers_.shape[axis]) +
                        (axis == 0 ? " batch items" : " heads") + ", expected 1 or " +
                        std::to_string(call[axis]));
    }
  }

 protected:
  int64_t count() const { return numbers_.count; }
  /// The numbers of a head.
  const float* of_head(int64_t batch, int64_t head) const {
    return read(place_of(batch, head)).numbers.data();
  }

 private:
  struct Head {
    std::once_flag read;
    std::vector<float> numbers;
    bool none = false;  ///< all are 0
  };

  size_t place_of(int64_t batch, int64_t head) const {
    const auto [items, heads] = numbers_.shape;
    return static_cast<size_t>((items == 1 ? 0 : batch) * heads + (heads == 1 ? 0 : head));
  }

  const Head& read(size_t place) const {
    Head& head = heads_[place];
    std::call_once(head.read, [&] {
      const auto item = static_cast<int64_t>(place) / numbers_.shape[1];
      const auto number = static_cast<int64_t>(place) % numbers_.shape[1];
      if (numbers_.read) {
        head.numbers = numbers_.read(item, number);
      } else {
        const auto first = numbers_.each.begin() + static_cast<int64_t>(place) * numbers_.count;
        head.numbers.assign(first, first + numbers_.count);
      }
      for (size_t i = 0; i < head.numbers.size(); ++i) take(head.numbers[i], i, item, number);
      head.none =
          std::all_of(head.numbers.begin(), head.numbers.end(), [](float one) { return one == 0; });
    });
    return head;
  }

  /// Throws Error(value) where a number is not finite, −inf aside where it may mask.
  void take(float& number, size_t place, int64_t item, int64_t head) const {
    if (may_mask_) number = effective_bias(number);
    if (std::isfinite(number) || (may_mask_ && number == kMasked)) return;
    throw Error(ErrorCode::value,
                number_name_ + " of batch " + std::to_string(item) + ", head " +
                    std::to_string(head) +
                    (numbers_.count == 1 ? "" : ", place " + std::to_string(place)) +
                    (may_mask_ ? " is NaN or +inf" : " is not finite"));
  }

  const HeadNumbers numbers_;
  const std::string name_, number_name_;
  const bool may_mask_;
  mutable std::vector<Head> heads_;  ///< [batch items, heads]
};

class AlibiTerm : public PlaceBiasTerm {
 public:
  AlibiTerm(HeadNumbers slopes, int64_t shift)
      : PlaceBiasTerm("alibi", "alibi slope", std::move(slopes), false), shift_(shift) {}

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const float slope = *of_head(batch, head);
    for (const int64_t query : queries) {
      for (int64_t key = keys.begin; key < keys.end; ++key) {
        out[key - keys.begin] -= slope * static_cast<float>(std::abs(query + shift_ - key));
      }
      out += row_stride;
    }
  }

 private:
  const int64_t shift_;
};

class RelativeTerm : public PlaceBiasTerm {
 public:
  RelativeTerm(HeadNumbers biases, int64_t keys)
      : PlaceBiasTerm("relative_bias", "relative bias", std::move(biases), true), keys_(keys) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    const float* const biases = of_head(batch, head) + keys_ - 1;
    const float* const begin = biases + queries.begin - (keys.end - 1);
    const float* const end = biases + queries.end - keys.begin;
    const auto none = [](float bias) { return bias == 0; };
    const auto masked = [](float bias) { return bias == kMasked; };
    return std::all_of(begin, end, none)     ? TileClass::full
           : std::all_of(begin, end, masked) ? TileClass::empty
                                             : TileClass::mixed;
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    for (const int64_t query : queries) {
      const float* const biases = of_head(batch, head) + query + keys_ - 1;
      for (int64_t key = keys.begin; key < keys.end; ++key) out[key - keys.begin] += biases[-key];
      out += row_stride;
    }
  }

  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    PlaceBiasTerm::check_shape(batch, heads, queries, keys);
    if (keys == keys_ && count() == queries + keys - 1) return;
    throw usage_error("relative_bias of " + std::to_string(count()) + " places, expected " +
                      std::to_string(queries + keys - 1));
  }

 private:
  const int64_t keys_;
};

class GridBiasTerm : public PlaceBiasTerm {
 public:
  GridBiasTerm(HeadNumbers biases, std::array<int64_t, 3> grid, int64_t first)
      : PlaceBiasTerm("relative_bias", "relative bias", std::move(biases), true),
        grid_(grid),
        video_{first, first + grid[0] * grid[1] * grid[2]} {}

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const auto [frames, height, width] = grid_;
    const IndexRange video = intersect(keys, video_);
    for (const int64_t query : queries) {
      if (video_.contains(query)) {
        const int64_t cell = query - video_.begin;
        const int64_t x = cell % width, y = cell / width % height, t = cell / width / height;
        // Line by line of the keys' grid.
        for (int64_t key = video.begin; key < video.end;) {
          const int64_t other = key - video_.begin, line = other / width;
          const int64_t past = std::min(video.end, video_.begin + (line + 1) * width);
          const int64_t lines = (t - line / height + frames - 1) * (2 * height - 1) +
                                (y - line % height + height - 1);
          const float* const biases =
              of_head(batch, head) + lines * (2 * width - 1) + x - other % width + width - 1;
          for (int64_t i = 0; i < past - key; ++i) out[key - keys.begin + i] += biases[-i];
          key = past;
        }
      }
      out += row_stride;
    }
  }

  std::string identity() const override {
    std::string text = PlaceBiasTerm::identity() + " of";
    for (const int64_t extent : grid_) text += " " + std::to_string(extent);
    return text + " from " + std::to_string(video_.begin);
  }

  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    PlaceBiasTerm::check_shape(batch, heads, queries, keys);
    if (queries == keys && video_.end <= keys) return;
    throw usage_error("relative_bias of a grid, expected as many keys as queries, at least " +
                      std::to_string(video_.end) + " (got " + std::to_string(queries) +
                      " queries, " + std::to_string(keys) + " keys)");
  }

 private:
  const std::array<int64_t, 3> grid_;
  const IndexRange video_;
};

}  // namespace

Mask alibi_mask(HeadNumbers slopes, int64_t shift) {
  return Mask::term(std::make_shared<AlibiTerm>(std::move(slopes), shift));
}

Mask relative_bias_mask(HeadNumbers biases, int64_t keys) {
  return Mask::term(std::make_shared<RelativeTerm>(std::move(biases), keys));
}

Mask grid_bias_mask(HeadNumbers biases, std::array<int64_t, 3> grid, int64_t first) {
  return Mask::term(std::make_shared<GridBiasTerm>(std::move(biases), grid, first));
}

}  // namespace attnscope
