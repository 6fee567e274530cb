#include "core/tensor/memory_tensor.h"

#include <cassert>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {

MemoryTensor::MemoryTensor(std::string name, DType dtype, std::vector<int64_t> shape,
                           std::vector<std::byte> bytes)
    : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), bytes_(std::move(bytes)) {
  const auto count = checked_count(shape_);
  const auto size = count ? checked_mul(*count, dtype_bytes(dtype_)) : std::nullopt;
  if (!size || *size != static_cast<int64_t>(bytes_.size())) {
    throw usage_error(name_ + ": the shape needs " + (size ? std::to_string(*size) : "too many") +
                      " bytes (got " + std::to_string(bytes_.size()) + ")");
  }
}

void MemoryTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                        std::byte* destination) const {
  assert(begin.size() == shape_.size() && count.size() == shape_.size());
  const size_t rank = shape_.size();
  const int64_t element = dtype_bytes(dtype_);
  // The innermost axes that are taken whole are copied in one piece with the axis outside them.
  int64_t run = element;
  size_t outer = rank;
  while (outer > 0) {
    --outer;
    run *= count[outer];
    if (count[outer] != shape_[outer]) break;
  }
  for (int64_t extent : count) {
    if (extent == 0) return;
  }
  std::vector<int64_t> at(begin.begin(), begin.end());
  while (true) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < rank; ++axis) offset = offset * shape_[axis] + at[axis];
    std::memcpy(destination, bytes_.data() + offset * element, static_cast<size_t>(run));
    destination += run;
    size_t axis = outer;
    while (axis > 0) {
      --axis;
      if (++at[axis] < begin[axis] + count[axis]) break;
      at[axis] = begin[axis];
      if (axis == 0) return;
    }
    if (outer == 0) return;
  }
}

}  // namespace attnscope
