#include "core/tensor/scaled_tensor.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/index_range.h"
#include "core/tensor/fp4_tensor.h"

namespace attnscope {
namespace {

std::string shape_words(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// Where the scale of a token stands along the scales' axis of tokens.
struct TokenPlaces {
  int64_t block = 1;  ///< of `by_thread` none
  ThreadScales by_thread = ThreadScales::none;

  int64_t of(int64_t token) const {
    switch (by_thread) {
      case ThreadScales::queries:  // 32 for each 128 tokens
        return 8 * (token / 32) + token % 8;
      case ThreadScales::keys:  // 4 for each 64 tokens
        return 4 * (token / 64) + token % 8 / 2;
      case ThreadScales::none:
        break;
    }
    return token / block;
  }
  int64_t count(int64_t tokens) const {
    const auto blocks = [tokens](int64_t size) { return (tokens + size - 1) / size; };
    if (by_thread == ThreadScales::queries) return 32 * blocks(128);
    return by_thread == ThreadScales::keys ? 4 * blocks(64) : blocks(block);
  }
  /// All places of tokens, which need not ascend.
  IndexRange of(IndexRange tokens) const {
    if (by_thread == ThreadScales::queries)
      return {8 * (tokens.begin / 32), 8 * ((tokens.end - 1) / 32 + 1)};
    if (by_thread == ThreadScales::keys)
      return {4 * (tokens.begin / 64), 4 * ((tokens.end - 1) / 64 + 1)};
    return {of(tokens.begin), of(tokens.end - 1) + 1};
  }
};

/// What the axes of a tensor of scales are.
struct ScaleAxes {
  /// For batch, head, token and channel the axis of the scales; −1: one scale serves all.
  std::array<int, 4> axis{-1, -1, -1, -1};
  TokenPlaces places;
  int64_t channels = 1;  ///< that share a scale, where scales go by channels
};

/// Finds out what the axes are from their extents.
class ScaleShape {
 public:
  ScaleShape(const TensorSource& codes, Layout layout, const CodeScales& scales)
      : codes_(codes),
        layout_(layout),
        extents_(head_extents(codes, layout)),
        scales_(scales),
        shape_(scales.values->shape()) {}

  ScaleAxes axes() {
    if (scales_.channels) return axes_of_blocks();
    const auto rank = static_cast<int>(shape_.size());
    const bool one = std::all_of(shape_.begin(), shape_.end(), [](int64_t n) { return n == 1; });
    if (one && !told_by_token()) return result_;
    if (rank == 1 && !told_by_token() && take(kHeadAxis, 0)) return result_;
    if (rank == 2 && !told_by_token() && takes(kBatchAxis, 0) && takes(kHeadAxis, 1)) {
      take(kBatchAxis, 0);
      take(kHeadAxis, 1);
      return result_;
    }
    // [1, X] is of heads of another number, as a kernel's scales of grouped queries are.
    if (rank == 2 && !told_by_token() && !begins_with_heads() && extents_[kHeadAxis] > 1) fail();
    // [B, H, X], or [H, X] of one batch item; axes of 1 behind X, or between H and the channels,
    // are none.
    int at = 0;
    const int inner = trailing_axis();
    if (inner < 1) fail();
    if (inner >= 2 && leading_axes(inner) == 2 && takes(kBatchAxis, 0) && takes(kHeadAxis, 1)) {
      take(kBatchAxis, at++);
    } else if (extents_[kBatchAxis] != 1 || leading_axes(inner) != 1 || !takes(kHeadAxis, 0)) {
      fail();
    }
    take(kHeadAxis, at);
    take_inner(inner);
    return result_;
  }

  /// Where the scales have the codes' axes, with a scale each `channels` channels.
  ScaleAxes axes_of_blocks() {
    const std::span<const int> roles = layout_axes(layout_);
    result_.channels = *scales_.channels;
    bool fits = shape_.size() == roles.size();
    for (size_t axis = 0; fits && axis < roles.size(); ++axis) {
      const int role = roles[axis];
      if (role == kChannelAxis) {
        fits = shape_[axis] == blocks_of(extents_[kChannelAxis], result_.channels);
        result_.axis[kChannelAxis] = static_cast<int>(axis);
      } else {
        fits = take(role, static_cast<int>(axis));
      }
    }
    if (fits) return result_;
    std::vector<int64_t> expected(codes_.shape().begin(), codes_.shape().end());
    expected.back() = blocks_of(extents_[kChannelAxis], result_.channels);
    throw file_error(scales_.values->name(), "",
                     shape_words(shape_) + " is no shape of scales for " + codes_.name() +
                         ", a scale each " + std::to_string(result_.channels) +
                         " channels (expected " + shape_words(expected) + ")" + swizzled(expected));
  }

 private:
  static int64_t blocks_of(int64_t extent, int64_t block) {
    return extent / block + (extent % block == 0 ? 0 : 1);
  }

  /// What the scales may be, where they are as many as cuBLAS's order of them has: tiles of 128
  /// tokens x 4 scales, stored as 32 x 16.
  std::string swizzled(const std::vector<int64_t>& expected) const {
    std::optional<int64_t> padded = 1;
    for (size_t axis = 0; padded && axis < expected.size(); ++axis) {
      const int role = layout_axes(layout_)[axis];
      const int64_t tile = role == kTokenAxis ? 128 : role == kChannelAxis ? 4 : 1;
      const auto extent = checked_mul(blocks_of(expected[axis], tile), tile);
      padded = extent ? checked_mul(*padded, *extent) : std::nullopt;
    }
    if (!padded || checked_count(shape_) != padded) return "";
    return ": they may stand in cuBLAS's order, tiles of 128 tokens x 4 scales, which is not "
           "read: store them token by token";
  }

  bool told_by_token() const {
    return scales_.block.has_value() || scales_.by_thread != ThreadScales::none;
  }
  int64_t extent(int axis) const { return shape_[static_cast<size_t>(axis)]; }
  bool takes(int role, int axis) const {
    return extent(axis) == 1 || extent(axis) == extents_[static_cast<size_t>(role)];
  }
  bool take(int role, int axis) {
    if (!takes(role, axis)) return false;
    result_.axis[static_cast<size_t>(role)] = extent(axis) == 1 ? -1 : axis;
    return true;
  }
  /// [H, X], of one batch item.
  bool begins_with_heads() const {
    return extents_[kBatchAxis] == 1 && shape_.size() > 1 && extent(0) != 1;
  }
  /// The last axis that is more than 1; the third, or the second of [H, X], where none of these is.
  int trailing_axis() const {
    const auto rank = static_cast<int>(shape_.size());
    int inner = rank - 1;
    const int least = std::min(begins_with_heads() ? 1 : 2, rank - 1);
    while (inner > least && extent(inner) == 1) --inner;
    return inner;
  }
  /// [B, H, 1, d], or [H, 1, d].
  bool is_behind_tokens(int inner) const {
    return inner == (begins_with_heads() ? 2 : 3) && extent(inner - 1) == 1;
  }
  /// Axes before `inner` that are not the 1 of tokens between heads and channels.
  int leading_axes(int inner) const { return is_behind_tokens(inner) ? inner - 1 : inner; }

  void take_inner(int axis) {
    const int64_t found = extent(axis), tokens = extents_[kTokenAxis],
                  channels = extents_[kChannelAxis];
    if (scales_.by_thread != ThreadScales::none) {
      result_.places = {1, scales_.by_thread};
      if (found != result_.places.count(tokens)) fail();
      result_.axis[kTokenAxis] = axis;
      return;
    }
    if (is_behind_tokens(axis) && !scales_.block) {
      if (found != channels) fail();
      result_.axis[kChannelAxis] = axis;
      return;
    }
    std::vector<int64_t> blocks;
    for (const int64_t block :
         scales_.block ? std::vector{*scales_.block} : std::vector<int64_t>{1, 16, 32, 64, 128}) {
      if (TokenPlaces{block}.count(tokens) == found && (found > 1 || scales_.block))
        blocks.push_back(block);
    }
    const bool by_channel = !scales_.block && found == channels && found > 1;
    if (found == 1 && !scales_.block) return;
    if (blocks.size() + (by_channel ? 1 : 0) != 1) fail(blocks.size() + (by_channel ? 1 : 0) > 1);
    if (by_channel) {
      result_.axis[kChannelAxis] = axis;
    } else {
      result_.axis[kTokenAxis] = axis;
      result_.places.block = blocks.front();
    }
  }

  [[noreturn]] void fail(bool several = false) const {
    const auto number = [&](int role) {
      return std::to_string(extents_[static_cast<size_t>(role)]);
    };
    std::string expected =
        several ? "may be of blocks of tokens or of channels: tell how many tokens share a scale "
                  "(--as q_block=N, "
                  "k_block=N)"
        : scales_.by_thread != ThreadScales::none
            ? "does not have as many scales as SageAttention's threads have for them"
            : "is no shape of scales for " + number(kBatchAxis) + " batch items, " +
                  number(kHeadAxis) + " heads, " + number(kTokenAxis) + " tokens and " +
                  number(kChannelAxis) +
                  " channels (expected one scale, [heads], [batch, heads] or [batch, heads, X], "
                  "where X is each " +
                  (scales_.block ? std::to_string(*scales_.block) : "16, 32, 64 or 128") +
                  " tokens" + (scales_.block ? "" : ", each token or each channel") + ")";
    throw file_error(scales_.values->name(), "",
                     shape_words(shape_) + " " + expected + ", for " + codes_.name());
  }

  const TensorSource& codes_;
  const Layout layout_;
  const HeadExtents extents_;
  const CodeScales& scales_;
  const std::span<const int64_t> shape_;
  ScaleAxes result_;
};

/// A byte of two codes is no single one: it must not pass for its lower half.
float single_e2m1(uint8_t byte) {
  return byte < 16 ? e2m1_value(byte) : std::numeric_limits<float>::quiet_NaN();
}

class ScaledTensor : public TensorSource {
 public:
  ScaledTensor(std::shared_ptr<const TensorSource> codes, Layout layout, CodeScales scales)
      : codes_(std::move(codes)), scales_(std::move(scales)), roles_(layout_axes(layout)) {
    if (scales_.values) axes_ = ScaleShape(*codes_, layout, scales_).axes();
    for (size_t code = 0; code < values_.size(); ++code) {
      const auto bits = static_cast<uint8_t>(code);
      values_[code] = scales_.e2m1                   ? single_e2m1(bits)
                      : codes_->dtype() == DType::i8 ? static_cast<float>(static_cast<int8_t>(bits))
                                                     : float8_value(codes_->dtype(), bits);
      if (!scales_.values) values_[code] *= static_cast<float>(scales_.factor);
    }
  }

  DType dtype() const override { return DType::f32; }
  std::span<const int64_t> shape() const override { return codes_->shape(); }
  const std::string& name() const override { return codes_->name(); }
  bool prefers_order() const override { return codes_->prefers_order(); }
  const ScaleAxes& axes() const { return axes_; }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    int64_t elements = 1;
    for (const int64_t extent : count) elements *= extent;
    if (elements == 0) return;
    // Codes stand at the end of what they are widened to, which goes on from its beginning.
    const std::byte* codes = destination + 3 * elements;
    codes_->read(begin, count, destination + 3 * elements);
    const ScaleBox scales = scales_.values ? read_scales(begin, count) : ScaleBox();
    std::vector<int64_t> at(begin.begin(), begin.end());
    const size_t last = at.size() - 1;
    assert(roles_[last] == kChannelAxis);
    const int64_t step = axes_.axis[kChannelAxis] < 0 ? 0 : scales.stride[kChannelAxis];
    const int64_t block = step == 0 ? count[last] : axes_.channels;
    const int64_t within = step == 0 ? 0 : begin[last] % block;
    const auto factor = static_cast<float>(scales_.factor);
    for (int64_t done = 0; done < elements; done += count[last]) {
      const float* scale = scales_.values ? scales.values.data() + place(scales, at) : nullptr;
      for (int64_t i = 0; i < count[last];) {
        const int64_t run = std::min(count[last], i + block - (within + i) % block);
        const float times = scale == nullptr ? 1 : scale[(within + i) / block * step];
        for (; i < run; ++i) {
          float value = values_[std::to_integer<size_t>(codes[done + i])];
          if (scale != nullptr) value = value * times * factor;
          std::memcpy(destination + 4 * (done + i), &value, sizeof value);
        }
      }
      for (size_t axis = last; axis-- > 0;) {
        if (++at[axis] < begin[axis] + count[axis]) break;
        at[axis] = begin[axis];
      }
    }
  }

 private:
  /// The scales of a box of codes.
  struct ScaleBox {
    std::vector<float> values;
    std::array<int64_t, 4> begin{}, stride{};  ///< of batch, head, token and channel
  };

  ScaleBox read_scales(std::span<const int64_t> begin, std::span<const int64_t> count) const {
    const TensorSource& source = *scales_.values;
    const size_t rank = source.shape().size();
    std::vector<int64_t> from(rank, 0), extent(rank, 1);
    ScaleBox box;
    for (size_t axis = 0; axis < begin.size(); ++axis) {
      const auto role = static_cast<size_t>(roles_[axis]);
      if (axes_.axis[role] < 0) continue;
      IndexRange range{begin[axis], begin[axis] + count[axis]};
      if (role == kTokenAxis) range = axes_.places.of(range);
      if (role == kChannelAxis) {
        range = {range.begin / axes_.channels, (range.end - 1) / axes_.channels + 1};
      }
      const auto own = static_cast<size_t>(axes_.axis[role]);
      from[own] = box.begin[role] = range.begin;
      extent[own] = range.size();
    }
    int64_t elements = 1;
    for (size_t own = rank; own-- > 0;) {
      for (size_t role = 0; role < 4; ++role) {
        if (axes_.axis[role] == static_cast<int>(own)) box.stride[role] = elements;
      }
      elements *= extent[own];
    }
    std::vector<std::byte> raw(static_cast<size_t>(elements * dtype_bytes(source.dtype())));
    source.read(from, extent, raw.data());
    box.values.resize(static_cast<size_t>(elements));
    if (scales_.type == ScaleCodes::e8m0) {
      std::transform(raw.begin(), raw.end(), box.values.begin(),
                     [](std::byte code) { return e8m0_value(std::to_integer<uint8_t>(code)); });
    } else {
      to_floats(scales_.type == ScaleCodes::e4m3 ? DType::e4m3 : source.dtype(), raw.data(),
                elements, box.values.data());
    }
    return box;
  }

  int64_t place(const ScaleBox& box, const std::vector<int64_t>& at) const {
    int64_t place = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const auto role = static_cast<size_t>(roles_[axis]);
      if (axes_.axis[role] < 0) continue;
      const int64_t index = role == kTokenAxis     ? axes_.places.of(at[axis])
                            : role == kChannelAxis ? at[axis] / axes_.channels
                                                   : at[axis];
      place += (index - box.begin[role]) * box.stride[role];
    }
    return place;
  }

  const std::shared_ptr<const TensorSource> codes_;
  const CodeScales scales_;
  const std::span<const int> roles_;  ///< for each axis of the codes batch, head, token or channel
  ScaleAxes axes_;
  std::array<float, 256> values_{};  ///< of each code; with the factor where that is all
};

}  // namespace

std::shared_ptr<const TensorSource> scaled_tensor(std::shared_ptr<const TensorSource> codes,
                                                  Layout layout, const CodeScales& scales) {
  assert(codes->dtype() == DType::i8 || is_float8(codes->dtype()) || scales.e2m1);
  return std::make_shared<ScaledTensor>(std::move(codes), layout, scales);
}

std::string scales_words(const TensorSource& codes, Layout layout, const CodeScales& scales) {
  if (!scales.values) return "one scale";
  const ScaleAxes axes = ScaleShape(codes, layout, scales).axes();
  const std::string each = axes.axis[kHeadAxis] >= 0    ? " of a head"
                           : axes.axis[kBatchAxis] >= 0 ? " of a batch item"
                                                        : "";
  if (scales.channels) {
    return "a scale each " + std::to_string(axes.channels) + " channels of a token";
  }
  if (axes.places.by_thread != ThreadScales::none)
    return "a scale a thread of SageAttention" + each;
  if (axes.axis[kTokenAxis] >= 0) {
    const int64_t block = axes.places.block;
    return (block == 1 ? "a scale each token"
                       : "a scale each " + std::to_string(block) + " tokens") +
           each;
  }
  if (axes.axis[kChannelAxis] >= 0) return "a scale each channel" + each;
  return axes.axis[kHeadAxis] >= 0    ? "a scale a head"
         : axes.axis[kBatchAxis] >= 0 ? "a scale a batch item"
                                      : "one scale";
}

}  // namespace attnscope
