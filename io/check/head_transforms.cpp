#include "io/check/head_transforms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/dtype.h"

namespace attnscope {
namespace {

/// A tensor mask whose booleans mean the opposite (true: hidden), or whose numbers 0 and 1 mean
/// booleans.
class ReinterpretedMask : public TensorSource {
 public:
  enum class As : uint8_t { inverted, numbers };
  ReinterpretedMask(std::shared_ptr<const TensorSource> source, As as)
      : source_(std::move(source)), as_(as) {}
  DType dtype() const override { return DType::boolean; }
  std::span<const int64_t> shape() const override { return source_->shape(); }
  const std::string& name() const override { return source_->name(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const int64_t elements =
        std::accumulate(count.begin(), count.end(), int64_t{1}, std::multiplies<>());
    if (as_ == As::inverted) {
      source_->read(begin, count, destination);
      for (int64_t i = 0; i < elements; ++i) {
        destination[i] = destination[i] == std::byte{0} ? std::byte{1} : std::byte{0};
      }
      return;
    }
    const DType dtype = source_->dtype();
    std::vector<std::byte> raw(static_cast<size_t>(elements * dtype_bytes(dtype)));
    std::vector<float> values(static_cast<size_t>(elements));
    source_->read(begin, count, raw.data());
    to_floats(dtype, raw.data(), elements, values.data());
    for (int64_t i = 0; i < elements; ++i) {
      destination[i] = values[static_cast<size_t>(i)] != 0 ? std::byte{1} : std::byte{0};
    }
  }

 private:
  std::shared_ptr<const TensorSource> source_;
  As as_;
};

/// key ≤ query + (keys − queries): a causal mask that is aligned at the last query and key.
class LastAlignedCausal : public MaskTerm {
 public:
  explicit LastAlignedCausal(int64_t shift) : shift_(shift) {}
  TileClass classify(int64_t, int64_t, IndexRange, IndexRange) const override {
    return TileClass::mixed;
  }
  void add_bias(int64_t, int64_t, std::span<const int64_t> queries, IndexRange keys, float* out,
                int64_t row_stride) const override {
    for (size_t r = 0; r < queries.size(); ++r, out += row_stride) {
      for (int64_t j = std::max(keys.begin, queries[r] + shift_ + 1); j < keys.end; ++j) {
        out[j - keys.begin] = -std::numeric_limits<float>::infinity();
      }
    }
  }
  std::string describe() const override { return "causal, aligned at the end"; }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 private:
  int64_t shift_;
};

constexpr double kNormEpsilon = 1e-6;

void normalise(Norm norm, int64_t width, float* row) {
  double mean = 0;
  if (norm == Norm::layer) {
    for (int64_t c = 0; c < width; ++c) mean += double{row[c]};
    mean /= static_cast<double>(width);
  }
  double squares = 0;
  for (int64_t c = 0; c < width; ++c) squares += (row[c] - mean) * (row[c] - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + kNormEpsilon);
  for (int64_t c = 0; c < width; ++c) row[c] = static_cast<float>((row[c] - mean) * factor);
}

/// 1 / RMS over the channels of all heads, of every token.
std::shared_ptr<const std::vector<float>> all_heads_factors(const HeadTensor& tensor,
                                                            int64_t batch) {
  constexpr int64_t kTokens = 1024;
  std::vector<double> squares(static_cast<size_t>(tensor.tokens()));
  std::vector<float> rows(static_cast<size_t>(kTokens * tensor.width()));
  for (int64_t head = 0; head < tensor.heads(); ++head) {
    const auto source = stored_rows(tensor, batch, head);
    for (int64_t begin = 0; begin < tensor.tokens(); begin += kTokens) {
      const IndexRange range{begin, std::min(begin + kTokens, tensor.tokens())};
      source->read(range, rows.data());
      for (int64_t i = 0; i < range.size() * tensor.width(); ++i) {
        const double value = rows[static_cast<size_t>(i)];
        squares[static_cast<size_t>(begin + i / tensor.width())] += value * value;
      }
    }
  }
  auto factors = std::make_shared<std::vector<float>>();
  const auto channels = static_cast<double>(tensor.heads() * tensor.width());
  for (double sum : squares) {
    factors->push_back(static_cast<float>(1 / std::sqrt(sum / channels + kNormEpsilon)));
  }
  return factors;
}

}  // namespace

std::shared_ptr<const TensorSource> inverted_booleans(
    std::shared_ptr<const TensorSource> booleans) {
  return std::make_shared<ReinterpretedMask>(std::move(booleans), ReinterpretedMask::As::inverted);
}

Mask number_mask(std::shared_ptr<const TensorSource> numbers) {
  return Mask::tensor(
      std::make_shared<ReinterpretedMask>(std::move(numbers), ReinterpretedMask::As::numbers));
}

Mask last_aligned_causal(int64_t shift) {
  return Mask::term(std::make_shared<LastAlignedCausal>(shift));
}

std::optional<Mask> padding_mask(const AttentionProblem& p) {
  const TokenGrid& keys = p.key_tokens();
  if (keys.text_valid().empty()) return std::nullopt;
  std::vector<std::vector<uint8_t>> valid;
  for (int64_t b = 0; b < p.batch(); ++b) {
    std::vector<uint8_t> row(static_cast<size_t>(p.num_keys()));
    for (int64_t j = 0; j < p.num_keys(); ++j) {
      row[static_cast<size_t>(j)] = keys.segment(j, b) != Segment::padding;
    }
    valid.push_back(std::move(row));
  }
  return Mask::keys(std::move(valid));
}

TokenPlacement standing_in(const TokenGrid& grid, const std::array<int, 3>& axes) {
  return [grid, axes](int64_t index) {
    const auto coord = grid.coord(index);
    if (!coord) return index;
    const std::array<int64_t, 3> place{coord->t, coord->y, coord->x};
    const std::array<int64_t, 3> extent{grid.frames(), grid.height(), grid.width()};
    int64_t at = 0;
    for (int axis : axes) {
      at = at * extent[static_cast<size_t>(axis)] + place[static_cast<size_t>(axis)];
    }
    return grid.video_range().begin + at;
  };
}

TokenPlacement standing_at(const TokenGrid& grid, const std::array<int, 3>& axes) {
  return [grid, axes](int64_t index) {
    if (!grid.coord(index)) return index;
    const std::array<int64_t, 3> extent{grid.frames(), grid.height(), grid.width()};
    std::array<int64_t, 3> place{};
    int64_t rest = index - grid.video_range().begin;
    for (size_t i = 3; i-- > 0;) {
      const auto axis = static_cast<size_t>(axes[i]);
      place[axis] = rest % extent[axis];
      rest /= extent[axis];
    }
    return grid.index_of({place[0], place[1], place[2]});
  };
}

TokenPlacement text_moved(const TokenGrid& grid) {
  const int64_t text = grid.text_range().size();
  const int64_t video = grid.video_range().size();
  const bool at_start = grid.text_place() == TextPlace::start;
  return [=](int64_t index) {
    if (at_start) return index < text ? index + video : index - text;
    return index < video ? index + text : index - video;
  };
}

RowSourcePtr normalised_rows(RowSourcePtr rows, Norm norm, const HeadTensor& tensor,
                             int64_t batch) {
  const int64_t width = rows->width();
  if (norm == Norm::none) return rows;
  if (norm != Norm::rms_all_heads) {
    return changed_rows(std::move(rows),
                        [norm, width](int64_t, float* row) { normalise(norm, width, row); });
  }
  const auto factors = all_heads_factors(tensor, batch);
  return changed_rows(std::move(rows), [factors, width](int64_t token, float* row) {
    for (int64_t c = 0; c < width; ++c) row[c] *= (*factors)[static_cast<size_t>(token)];
  });
}

std::string_view norm_text(Norm norm) {
  switch (norm) {
    case Norm::rms:
      return "RMS norm of each head";
    case Norm::layer:
      return "layer norm of each head";
    case Norm::rms_all_heads:
      return "RMS norm over all heads";
    case Norm::none:
      break;
  }
  return "";
}

}  // namespace attnscope
