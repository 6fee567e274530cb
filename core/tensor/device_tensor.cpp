#include "core/tensor/device_tensor.h"

#include <cassert>
#include <cstdint>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

DeviceTensor::DeviceTensor(Parts parts) : parts_(std::move(parts)) {
  assert(parts_.reader != nullptr && parts_.shape.size() == parts_.strides.size());
  const auto bytes = static_cast<uintptr_t>(dtype_bytes(parts_.dtype));
  if (reinterpret_cast<uintptr_t>(parts_.data) % bytes != 0) {
    throw usage_error(parts_.name + ": elements do not lie on multiples of their size");
  }
}

void DeviceTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                        std::byte* destination) const {
  const int64_t element = dtype_bytes(parts_.dtype);
  const std::byte* from = parts_.data;
  // The axes that the box has more than one element of.
  struct Axis {
    int64_t count, stride;
  };
  std::vector<Axis> axes;
  for (size_t axis = 0; axis < count.size(); ++axis) {
    if (count[axis] == 0) return;
    from += begin[axis] * parts_.strides[axis] * element;
    if (count[axis] > 1) axes.push_back({count[axis], parts_.strides[axis]});
  }
  // The last two are rows, those before are walked.
  while (axes.size() < 2) axes.insert(axes.begin(), {1, 0});
  const Axis rows = axes[axes.size() - 2], channels = axes.back();
  axes.resize(axes.size() - 2);
  std::vector<int64_t> place(axes.size());
  while (true) {
    const DeviceRows piece{parts_.reader, parts_.device,  from,        parts_.dtype,
                           rows.count,    channels.count, rows.stride, channels.stride};
    parts_.reader->read(piece, destination);
    destination += rows.count * piece.row_bytes();
    size_t axis = axes.size();
    for (; axis > 0; --axis) {
      from += axes[axis - 1].stride * element;
      if (++place[axis - 1] < axes[axis - 1].count) break;
      from -= axes[axis - 1].count * axes[axis - 1].stride * element;
      place[axis - 1] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace attnscope
