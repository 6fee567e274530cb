#include "io/tensors/file_tensor.h"

#include <algorithm>
#include <cassert>

#include "io/files/read_box.h"

namespace attnscope {
namespace {

/// One axis of the box that is wanted.
struct ViewAxis {
  int64_t stride = 0;       ///< elements from one to the next in the file
  int64_t count = 0;        ///< how many are wanted
  int64_t destination = 0;  ///< bytes from one to the next in memory
};

/// The box as a packed array that read_box knows, and axes that no such array has (repeats, strides
/// that do not nest), which are walked one index at a time.
struct Walk {
  std::vector<FileAxis> packed;
  std::vector<ViewAxis> walked;
};

Walk plan_walk(std::vector<ViewAxis> axes) {
  std::erase_if(axes, [](const ViewAxis& a) { return a.count == 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const ViewAxis& a, const ViewAxis& b) { return a.stride < b.stride; });
  Walk walk;
  // From the fastest axis on: each packed axis is as long as the next one's stride says.
  int64_t step = 1;
  std::vector<FileAxis> fastest_first;
  for (const ViewAxis& axis : axes) {
    const bool first = fastest_first.empty();
    const int64_t ratio = axis.stride / step;
    const bool nests = axis.stride > 0 && axis.stride % step == 0 &&
                       (first || fastest_first.back().count <= ratio);
    if (!nests) {
      walk.walked.push_back(axis);
      continue;
    }
    if (first && ratio > 1) {
      // Every ratio-th element: one wanted of an axis of that many.
      fastest_first.push_back({ratio, 0, 1, 0});
    } else if (!first) {
      fastest_first.back().extent = ratio;
    }
    fastest_first.push_back({axis.count, 0, axis.count, axis.destination});
    step = axis.stride;
  }
  walk.packed.assign(fastest_first.rbegin(), fastest_first.rend());
  return walk;
}

}  // namespace

std::vector<int64_t> packed_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  // Where there is no element, the extents' product may overflow, and no stride is ever used.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return strides;
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) strides[axis] = step;
  return strides;
}

FileTensor::FileTensor(std::shared_ptr<const ByteSource> file, std::string name,
                       FileTensorLayout layout)
    : file_(std::move(file)), name_(std::move(name)), layout_(std::move(layout)) {
  if (layout_.strides.empty()) layout_.strides = packed_strides(layout_.shape);
  assert(layout_.strides.size() == layout_.shape.size());
}

void FileTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                      std::byte* destination) const {
  const size_t rank = layout_.shape.size();
  assert(begin.size() == rank && count.size() == rank);
  const int64_t element = dtype_bytes(layout_.dtype);
  file_->verify();
  std::vector<ViewAxis> axes(rank);
  int64_t first = 0;
  int64_t step = element;
  for (size_t axis = rank; axis-- > 0;) {
    assert(begin[axis] >= 0 && count[axis] >= 0 &&
           begin[axis] + count[axis] <= layout_.shape[axis]);
    if (count[axis] == 0) return;
    axes[axis] = {layout_.strides[axis], count[axis], step};
    step *= count[axis];
    first += begin[axis] * layout_.strides[axis];
  }
  const Walk walk = plan_walk(std::move(axes));
  std::vector<int64_t> at(walk.walked.size(), 0);
  while (true) {
    int64_t place = first;
    std::byte* target = destination;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      place += at[axis] * walk.walked[axis].stride;
      target += at[axis] * walk.walked[axis].destination;
    }
    read_box(*file_, layout_.offset + place * element, element, walk.packed, target);
    size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == walk.walked[axis - 1].count) at[--axis] = 0;
    if (axis == 0) break;
  }
  if (layout_.big_endian && element > 1) swap_bytes(destination, step / element, element);
}

void swap_bytes(std::byte* data, int64_t count, int64_t element) {
  for (int64_t i = 0; i < count; ++i, data += element) std::reverse(data, data + element);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace attnscope
