#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/index_range.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The order of a tensor's axes: b batch, h head, s sequence, d channel. Axes that are not named
/// have extent 1.
enum class Layout : uint8_t { bhsd, bshd, hsd, shd, sd };

std::string_view layout_name(Layout layout);
std::optional<Layout> parse_layout(std::string_view name);
/// The number of axes the layout names.
int layout_rank(Layout layout);
/// The places of HeadExtents.
constexpr int kBatchAxis = 0, kHeadAxis = 1, kTokenAxis = 2, kChannelAxis = 3;
/// For each of the layout's axes which of these it is.
std::span<const int> layout_axes(Layout layout);

/// [batch, heads, tokens, channels] of a tensor. Throws Error(usage) where its rank does not fit
/// the layout.
using HeadExtents = std::array<int64_t, 4>;
HeadExtents head_extents(const TensorSource& source, Layout layout);

/// A Q, K or V tensor seen as [batch, heads, tokens, width], whatever its layout. f64 sources are
/// served as f32, rounded to nearest even. Shares the source; thread-safe like it.
class HeadTensor {
 public:
  HeadTensor() = default;
  /// Throws Error(usage) when the rank does not fit the layout or the dtype is none of f64,
  /// f32, f16 and bf16.
  HeadTensor(std::shared_ptr<const TensorSource> source, Layout layout);

  explicit operator bool() const { return source_ != nullptr; }
  const TensorSource& source() const { return *source_; }
  Layout layout() const { return layout_; }
  int64_t batch() const { return extent_[0]; }
  int64_t heads() const { return extent_[1]; }
  int64_t tokens() const { return extent_[2]; }
  int64_t width() const { return extent_[3]; }
  /// f32, f16 or bf16.
  DType dtype() const;
  int64_t row_bytes() const { return width() * dtype_bytes(dtype()); }

  /// Rows [rows.size(), width] of one head, packed, in dtype(). Memory beyond `destination` stays
  /// below 1 MiB.
  void read_rows(int64_t batch, int64_t head, IndexRange rows, std::byte* destination) const;

  /// All rows of one head, in dtype(), where they lie in a device's memory; none where they do not:
  /// f64 sources are rounded on the host.
  std::optional<DeviceRows> device_rows(int64_t batch, int64_t head) const;

 private:
  std::shared_ptr<const TensorSource> source_;
  Layout layout_ = Layout::bhsd;
  HeadExtents extent_{};
};

}  // namespace attnscope
