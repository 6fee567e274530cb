#include "core/tensor/layout.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/layout_names.h"

namespace attnscope {
namespace {

/// For each layout its name and, for every axis of the tensor, which of b, h, s, d it is.
struct LayoutInfo {
  Layout layout;
  std::string_view name;
  std::array<int, 4> axes;
};

constexpr std::array<LayoutInfo, 5> kLayouts{
    {{Layout::bhsd, "bhsd", {kBatchAxis, kHeadAxis, kTokenAxis, kChannelAxis}},
     {Layout::bshd, "bshd", {kBatchAxis, kTokenAxis, kHeadAxis, kChannelAxis}},
     {Layout::hsd, "hsd", {kHeadAxis, kTokenAxis, kChannelAxis, -1}},
     {Layout::shd, "shd", {kTokenAxis, kHeadAxis, kChannelAxis, -1}},
     {Layout::sd, "sd", {kTokenAxis, kChannelAxis, -1, -1}}}};

const LayoutInfo& info_of(Layout layout) { return kLayouts[static_cast<size_t>(layout)]; }

/// f64 rows are converted in pieces of at most this many bytes.
constexpr int64_t kPieceBytes = int64_t{512} << 10;

}  // namespace

std::string_view layout_name(Layout layout) { return info_of(layout).name; }

std::optional<Layout> parse_layout(std::string_view name) {
  for (const LayoutInfo& info : kLayouts) {
    if (info.name == name) return info.layout;
  }
  return std::nullopt;
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const LayoutInfo& info : kLayouts) names.emplace_back(info.name);
  return names;
}

int layout_rank(Layout layout) { return static_cast<int>(info_of(layout).name.size()); }

std::span<const int> layout_axes(Layout layout) {
  return std::span(info_of(layout).axes).first(info_of(layout).name.size());
}

HeadExtents head_extents(const TensorSource& source, Layout layout) {
  const auto shape = source.shape();
  if (static_cast<int>(shape.size()) != layout_rank(layout)) {
    throw usage_error(source.name() + ": layout " + std::string(layout_name(layout)) + " needs " +
                      std::to_string(layout_rank(layout)) + " dimensions (got " +
                      std::to_string(shape.size()) + ")");
  }
  HeadExtents extents{1, 1, 1, 1};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    extents[static_cast<size_t>(info_of(layout).axes[axis])] = shape[axis];
  }
  return extents;
}

HeadTensor::HeadTensor(std::shared_ptr<const TensorSource> source, Layout layout)
    : source_(std::move(source)), layout_(layout), extent_(head_extents(*source_, layout)) {
  if (!is_floating(source_->dtype()) || is_float8(source_->dtype())) {
    throw usage_error(source_->name() + ": expected f32, f16, bf16 or f64 (got " +
                      std::string(dtype_name(source_->dtype())) + ")");
  }
}

DType HeadTensor::dtype() const {
  return source_->dtype() == DType::f64 ? DType::f32 : source_->dtype();
}

void HeadTensor::read_rows(int64_t batch, int64_t head, IndexRange rows,
                           std::byte* destination) const {
  assert(batch >= 0 && batch < extent_[kBatchAxis] && head >= 0 && head < extent_[kHeadAxis]);
  assert(rows.begin >= 0 && rows.end <= extent_[kTokenAxis]);
  const auto read = [&](IndexRange part, std::byte* to) {
    const std::array<IndexRange, 4> wanted{IndexRange{batch, batch + 1}, IndexRange{head, head + 1},
                                           part, IndexRange{0, width()}};
    std::array<int64_t, 4> begin{}, count{};
    const auto rank = static_cast<size_t>(layout_rank(layout_));
    for (size_t axis = 0; axis < rank; ++axis) {
      const IndexRange& range = wanted[static_cast<size_t>(info_of(layout_).axes[axis])];
      begin[axis] = range.begin;
      count[axis] = range.size();
    }
    source_->read({begin.data(), rank}, {count.data(), rank}, to);
  };
  if (rows.empty() || width() == 0) return;
  if (source_->dtype() != DType::f64) return read(rows, destination);

  const int64_t wide_row = width() * dtype_bytes(DType::f64);
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / wide_row, 1, rows.size());
  std::vector<std::byte> wide(static_cast<size_t>(piece * wide_row));
  std::vector<float> narrow(static_cast<size_t>(width()));
  for (int64_t row = rows.begin; row < rows.end; row += piece) {
    const IndexRange part{row, std::min(row + piece, rows.end)};
    read(part, wide.data());
    for (int64_t r = 0; r < part.size(); ++r) {
      to_floats(DType::f64, wide.data() + r * wide_row, width(), narrow.data());
      const auto* bytes = reinterpret_cast<const std::byte*>(narrow.data());
      destination = std::copy_n(bytes, row_bytes(), destination);
    }
  }
}

std::optional<DeviceRows> HeadTensor::device_rows(int64_t batch, int64_t head) const {
  assert(batch >= 0 && batch < extent_[kBatchAxis] && head >= 0 && head < extent_[kHeadAxis]);
  const auto place = source_->device_place();
  if (!place || source_->dtype() == DType::f64) return std::nullopt;
  std::array<int64_t, 4> strides{};
  for (size_t axis = 0; axis < place->strides.size(); ++axis) {
    strides[static_cast<size_t>(info_of(layout_).axes[axis])] = place->strides[axis];
  }
  const int64_t first = batch * strides[kBatchAxis] + head * strides[kHeadAxis];
  return DeviceRows{place->reader,
                    place->device,
                    place->data + first * dtype_bytes(dtype()),
                    dtype(),
                    tokens(),
                    width(),
                    strides[kTokenAxis],
                    strides[kChannelAxis]};
}

}  // namespace attnscope
