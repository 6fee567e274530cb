#include "python/native/array_tensor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/tensor/device_tensor.h"
#include "kernels/cuda_backend.h"

namespace attnscope {
namespace {

namespace nb = nanobind;

std::optional<DType> dtype_of(const nb::dlpack::dtype& type) {
  if (type.lanes != 1) return std::nullopt;
  const int bits = type.bits;
  const auto by_size = [&](DType d64, DType d32, DType d16,
                           std::optional<DType> d8) -> std::optional<DType> {
    return bits == 64 ? d64 : bits == 32 ? d32 : bits == 16 ? d16 : bits == 8 ? d8 : std::nullopt;
  };
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Float:
      return by_size(DType::f64, DType::f32, DType::f16, std::nullopt);
    case nb::dlpack::dtype_code::Bfloat:
      return bits == 16 ? std::optional(DType::bf16) : std::nullopt;
    case nb::dlpack::dtype_code::Int:
      return by_size(DType::i64, DType::i32, DType::i16, DType::i8);
    case nb::dlpack::dtype_code::UInt:
      return by_size(DType::u64, DType::u32, DType::u16, DType::u8);
    case nb::dlpack::dtype_code::Bool:
      return bits == 8 ? std::optional(DType::boolean) : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// Copies `count` elements that lie `stride` bytes apart.
template <size_t Bytes>
std::byte* copy_spread(const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i, from += stride, to += Bytes) std::memcpy(to, from, Bytes);
  return to;
}

class ArrayTensor : public TensorSource {
 public:
  ArrayTensor(std::string name, DType dtype, DataArray array)
      : name_(std::move(name)), dtype_(dtype), array_(std::move(array)) {
    data_ = static_cast<const std::byte*>(array_.data());
    for (size_t axis = 0; axis < array_.ndim(); ++axis) {
      shape_.push_back(static_cast<int64_t>(array_.shape(axis)));
      strides_.push_back(array_.stride(axis) * dtype_bytes(dtype_));
    }
  }

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }

  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    const std::byte* from = data_;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (count[axis] == 0) return;
      from += begin[axis] * strides_[axis];
    }
    copy_axis(0, from, count, destination);
  }

 private:
  /// Copies the box from this axis on; returns the end of the bytes that it wrote.
  std::byte* copy_axis(size_t axis, const std::byte* from, std::span<const int64_t> count,
                       std::byte* to) const {
    if (is_packed(axis, count)) {
      int64_t bytes = dtype_bytes(dtype_);
      for (size_t inner = axis; inner < shape_.size(); ++inner) bytes *= count[inner];
      std::memcpy(to, from, static_cast<size_t>(bytes));
      return to + bytes;
    }
    if (axis + 1 == shape_.size()) return copy_elements(from, strides_[axis], count[axis], to);
    for (int64_t i = 0; i < count[axis]; ++i, from += strides_[axis]) {
      to = copy_axis(axis + 1, from, count, to);
    }
    return to;
  }

  /// True where the box has no gaps in memory from this axis on.
  bool is_packed(size_t axis, std::span<const int64_t> count) const {
    int64_t packed = dtype_bytes(dtype_);
    for (size_t inner = shape_.size(); inner-- > axis;) {
      if (count[inner] != 1 && strides_[inner] != packed) return false;
      packed *= count[inner];
    }
    return true;
  }

  std::byte* copy_elements(const std::byte* from, int64_t stride, int64_t count,
                           std::byte* to) const {
    switch (dtype_bytes(dtype_)) {
      case 8:
        return copy_spread<8>(from, stride, count, to);
      case 4:
        return copy_spread<4>(from, stride, count, to);
      case 2:
        return copy_spread<2>(from, stride, count, to);
      default:
        return copy_spread<1>(from, stride, count, to);
    }
  }

  const std::string name_;
  const DType dtype_;
  const DataArray array_;
  const std::byte* data_ = nullptr;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;  ///< bytes
};

/// One in a CUDA device's memory, as soon as it is there.
std::shared_ptr<const TensorSource> device_tensor(std::string name, DType dtype, DataArray array) {
  DeviceTensor::Parts parts;
  parts.name = std::move(name);
  parts.dtype = dtype;
  parts.device = array.device_id();
  const std::string where =
      parts.name + ": lies in the memory of CUDA device " + std::to_string(parts.device);
  {
    const nb::gil_scoped_release unlocked;
    parts.reader = cuda_reader();
    if (parts.reader == nullptr) {
      const std::string& obstacle = cuda_state().obstacle;
      throw Error(ErrorCode::unavailable,
                  where + ", which nothing here can read: " +
                      (obstacle.empty() ? "there is no CUDA backend" : obstacle));
    }
    try {
      parts.reader->wait(parts.device);
    } catch (const Error& error) {
      throw Error(error.code(), where + ": " + error.what());
    }
  }
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    parts.shape.push_back(static_cast<int64_t>(array.shape(axis)));
    parts.strides.push_back(array.stride(axis));
  }
  parts.data = static_cast<const std::byte*>(array.data());
  parts.owner = std::make_shared<const DataArray>(std::move(array));
  return std::make_shared<DeviceTensor>(std::move(parts));
}

}  // namespace

std::shared_ptr<const TensorSource> array_tensor(std::string name, DataArray array, bool as_bf16) {
  const nb::dlpack::dtype type = array.dtype();
  auto dtype = dtype_of(type);
  if (as_bf16 && dtype == DType::u16) dtype = DType::bf16;
  if (!dtype) {
    throw usage_error(name + ": this type of elements is not known here (DLPack code " +
                      std::to_string(type.code) + ", " + std::to_string(type.bits) +
                      " bits): expected f16, bf16, f32 or f64");
  }
  switch (array.device_type()) {
    case nb::device::cpu::value:
      break;
    case nb::device::cuda::value:
      return device_tensor(std::move(name), *dtype, std::move(array));
    default:
      throw usage_error(
          name + ": lies on a device (DLPack " + std::to_string(array.device_type()) +
          ") whose memory cannot be read here: expected the host's, or a CUDA device's");
  }
  return std::make_shared<ArrayTensor>(std::move(name), *dtype, std::move(array));
}

}  // namespace attnscope
