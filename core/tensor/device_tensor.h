#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// A tensor in the memory of a CUDA device, whatever its strides: backends of that device take it
/// from there (TensorSource::device_place), others read it. Immutable and thread-safe.
class DeviceTensor : public TensorSource {
 public:
  struct Parts {
    std::string name;  ///< how messages call it
    DType dtype = DType::f32;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;  ///< in elements, as many as the shape has numbers
    int device = 0;
    const std::byte* data = nullptr;       ///< a device address; must be aligned to an element
    const DeviceReader* reader = nullptr;  ///< must outlive the tensor
    std::shared_ptr<const void> owner;     ///< of the memory: kept as long as the tensor
  };
  /// The memory's content must be there (DeviceReader::wait) and stay as it is. Throws Error(usage)
  /// where `data` is not aligned.
  explicit DeviceTensor(Parts parts);

  DType dtype() const override { return parts_.dtype; }
  std::span<const int64_t> shape() const override { return parts_.shape; }
  const std::string& name() const override { return parts_.name; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;
  std::optional<DevicePlace> device_place() const override {
    return DevicePlace{parts_.reader, parts_.device, parts_.data, parts_.strides};
  }

 private:
  const Parts parts_;
};

}  // namespace attnscope
