#include "io/tensors/file_tensor.h"

#include <algorithm>
#include <cassert>

#include "io/files/input_file.h"

namespace attnscope {
namespace {

void swap_bytes(std::byte* data, int64_t count, int64_t element) {
  for (int64_t i = 0; i < count; ++i, data += element) std::reverse(data, data + element);
}

}  // namespace

void FileTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                      std::byte* destination) const {
  const size_t rank = layout_.shape.size();
  assert(begin.size() == rank && count.size() == rank);
  const int64_t element = dtype_bytes(layout_.dtype);
  std::vector<FileAxis> axes(rank);
  int64_t step = element;
  for (size_t axis = rank; axis-- > 0;) {
    assert(begin[axis] >= 0 && count[axis] >= 0 &&
           begin[axis] + count[axis] <= layout_.shape[axis]);
    axes[axis] = {layout_.shape[axis], begin[axis], count[axis], step};
    step *= count[axis];
  }
  // The last axis is the fastest in memory; in Fortran order the first one is in the file.
  if (layout_.fortran_order) std::reverse(axes.begin(), axes.end());
  file_->verify();
  read_box(*file_, layout_.offset, element, axes, destination);
  if (layout_.big_endian && element > 1) swap_bytes(destination, step / element, element);
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace attnscope
