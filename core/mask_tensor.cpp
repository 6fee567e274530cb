#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/checked_math.h"
#include "core/error.h"
#include "core/mask.h"

namespace attnscope {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
/// Tensors are read in pieces of at most this many elements.
constexpr int64_t kPieceElements = 32768;

using Index4 = std::array<int64_t, 4>;  ///< batch, head, query, key

/// A tensor as it broadcasts to [B, H, Nq, Nk], its elements as biases.
class BiasSource {
 public:
  explicit BiasSource(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {
    const auto shape = source_->shape();
    const DType dtype = source_->dtype();
    if (shape.size() > 4) {
      throw usage_error(source_->name() + ": a mask has at most 4 dimensions (got " +
                        std::to_string(shape.size()) + ")");
    }
    if (dtype != DType::boolean && !is_floating(dtype)) {
      throw usage_error(source_->name() + ": a mask is bool or floating (got " +
                        std::string(dtype_name(dtype)) + ")");
    }
    std::copy(shape.begin(), shape.end(), extent_.end() - static_cast<int64_t>(shape.size()));
    for (int64_t extent : extent_) {
      if (extent < 1) throw usage_error(source_->name() + ": a mask without elements");
    }
  }

  const std::string& name() const { return source_->name(); }
  bool is_bool() const { return source_->dtype() == DType::boolean; }
  const Index4& extent() const { return extent_; }

  /// Reads the box as biases; begin and count lie within extent(), and the box holds at most
  /// kPieceElements. Throws Error(value) at NaN and +inf.
  void read(const Index4& begin, const Index4& count, std::vector<float>& out) const {
    const int64_t total = count[0] * count[1] * count[2] * count[3];
    assert(total <= kPieceElements);
    std::vector<std::byte> bytes(static_cast<size_t>(total * dtype_bytes(source_->dtype())));
    const size_t rank = source_->shape().size();
    source_->read({begin.end() - rank, rank}, {count.end() - rank, rank}, bytes.data());
    out.resize(static_cast<size_t>(total));
    if (is_bool()) {
      std::transform(bytes.begin(), bytes.end(), out.begin(),
                     [](std::byte b) { return b != std::byte{0} ? 0.0f : kMasked; });
      return;
    }
    to_floats(source_->dtype(), bytes.data(), total, out.data());
    // NaN compares false too.
    const auto bad = std::find_if(out.begin(), out.end(), [](float value) {
      return !(value <= std::numeric_limits<float>::max());
    });
    if (bad != out.end()) refuse(begin, count, bad - out.begin(), *bad);
  }

 private:
  [[noreturn]] void refuse(const Index4& begin, const Index4& count, int64_t position,
                           float value) const {
    std::string place;
    for (size_t axis = 4; axis-- > 4 - source_->shape().size();) {
      const int64_t index = begin[axis] + position % count[axis];
      position /= count[axis];
      place = std::to_string(index) + (place.empty() ? "" : ", ") + place;
    }
    throw Error(ErrorCode::value, name() + ": the bias at [" + place + "] is " +
                                      (std::isnan(value) ? "NaN" : "+inf") +
                                      " (expected a finite number or -inf)");
  }

  std::shared_ptr<const TensorSource> source_;
  Index4 extent_{1, 1, 1, 1};
};

void check_broadcast(const BiasSource& source, const Index4& problem) {
  const Index4& extent = source.extent();
  const auto join = [](const Index4& shape) {
    std::string text;
    for (int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
  };
  for (size_t axis = 0; axis < 4; ++axis) {
    if (extent[axis] == 1 || extent[axis] == problem[axis]) continue;
    throw usage_error(source.name() + ": a mask of shape " + join(extent) +
                      " does not broadcast to " + join(problem));
  }
}

/// A bias that is the same for every query: kept in memory, one number a key.
class KeyBiasTerm : public MaskTerm {
 public:
  explicit KeyBiasTerm(BiasSource source) : source_(std::move(source)) {
    const Index4& extent = source_.extent();
    const auto rows = checked_mul(extent[0], extent[1]);
    const auto total = rows ? checked_mul(*rows, extent[3]) : std::nullopt;
    if (!total) throw usage_error(source_.name() + ": the mask is too large");
    bias_.reserve(static_cast<size_t>(*total));
    std::vector<float> piece;
    for (int64_t row = 0; row < *rows; ++row) {
      for (int64_t key = 0; key < extent[3]; key += kPieceElements) {
        const int64_t count = std::min(kPieceElements, extent[3] - key);
        source_.read({row / extent[1], row % extent[1], 0, key}, {1, 1, 1, count}, piece);
        bias_.insert(bias_.end(), piece.begin(), piece.end());
      }
    }
    count_runs();
  }

  TileClass classify(int64_t batch, int64_t head, IndexRange, IndexRange keys) const override {
    const int64_t width = source_.extent()[3];
    const IndexRange range = width == 1 ? IndexRange{0, 1} : keys;
    const auto first = static_cast<size_t>(row_of(batch, head) * (width + 1) + range.begin);
    const auto last = first + static_cast<size_t>(range.size());
    if (masked_before_[last] - masked_before_[first] == range.size()) return TileClass::empty;
    if (zeros_before_[last] - zeros_before_[first] == range.size()) return TileClass::full;
    return TileClass::mixed;
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const int64_t width = source_.extent()[3];
    const float* bias = bias_.data() + row_of(batch, head) * width;
    for (size_t row = 0; row < queries.size(); ++row, out += row_stride) {
      if (width == 1) {
        for (int64_t c = 0; c < keys.size(); ++c) out[c] += bias[0];
      } else {
        for (int64_t c = 0; c < keys.size(); ++c) out[c] += bias[keys.begin + c];
      }
    }
  }

  bool has_finite_bias() const override { return has_finite_bias_; }
  std::string describe() const override { return "tensor"; }
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    check_broadcast(source_, {batch, heads, queries, keys});
  }

 private:
  int64_t row_of(int64_t batch, int64_t head) const {
    const Index4& extent = source_.extent();
    return (extent[0] == 1 ? 0 : batch) * extent[1] + (extent[1] == 1 ? 0 : head);
  }

  void count_runs() {
    const auto width = static_cast<size_t>(source_.extent()[3]);
    for (size_t row = 0; row < bias_.size() / width; ++row) {
      int64_t masked = 0, zeros = 0;
      for (size_t key = 0; key <= width; ++key) {
        masked_before_.push_back(masked);
        zeros_before_.push_back(zeros);
        if (key == width) break;
        const float bias = bias_[row * width + key];
        masked += bias == kMasked;
        zeros += bias == 0;
        has_finite_bias_ |= bias != kMasked && bias != 0;
      }
    }
  }

  BiasSource source_;
  std::vector<float> bias_;  ///< [batch or 1, head or 1, key or 1]
  /// Along each row of bias_ and one past its end: how many before it are −inf, and 0.
  std::vector<int64_t> masked_before_, zeros_before_;
  bool has_finite_bias_ = false;
};

/// A bias that differs from query to query: read where it is needed.
class DenseBiasTerm : public MaskTerm {
 public:
  explicit DenseBiasTerm(BiasSource source) : source_(std::move(source)) {}

  TileClass classify(int64_t, int64_t, IndexRange, IndexRange) const override {
    return TileClass::mixed;
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const Index4& extent = source_.extent();
    const bool one_key = extent[3] == 1;
    std::vector<float> piece;
    for (int64_t key = keys.begin; key < keys.end;) {
      const int64_t wide = std::min(keys.end - key, kPieceElements);
      const int64_t width = one_key ? 1 : wide;
      const int64_t most_rows = std::max<int64_t>(1, kPieceElements / width);
      for (size_t row = 0; row < queries.size();) {
        const int64_t rows = run_length(queries.subspan(row), most_rows);
        source_.read({extent[0] == 1 ? 0 : batch, extent[1] == 1 ? 0 : head, queries[row],
                      one_key ? 0 : key},
                     {1, 1, rows, width}, piece);
        for (int64_t r = 0; r < rows; ++r) {
          float* to = out + (static_cast<int64_t>(row) + r) * row_stride + (key - keys.begin);
          const float* from = piece.data() + r * width;
          for (int64_t c = 0; c < wide; ++c) to[c] += from[one_key ? 0 : c];
        }
        row += static_cast<size_t>(rows);
      }
      key += wide;
    }
  }

  bool has_finite_bias() const override { return !source_.is_bool(); }
  std::string describe() const override { return "tensor"; }
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    check_broadcast(source_, {batch, heads, queries, keys});
  }

 private:
  /// How many of the first queries are consecutive, at most `limit`.
  static int64_t run_length(std::span<const int64_t> queries, int64_t limit) {
    int64_t length = 1;
    while (length < limit && length < static_cast<int64_t>(queries.size()) &&
           queries[static_cast<size_t>(length)] == queries[0] + length) {
      ++length;
    }
    return length;
  }
  BiasSource source_;
};

}  // namespace

Mask Mask::tensor(std::shared_ptr<const TensorSource> source) {
  BiasSource bias(std::move(source));
  if (bias.extent()[2] == 1) return Mask(std::make_shared<KeyBiasTerm>(std::move(bias)));
  return Mask(std::make_shared<DenseBiasTerm>(std::move(bias)));
}

}  // namespace attnscope
