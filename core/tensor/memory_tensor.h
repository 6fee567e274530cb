#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// A tensor in memory: row-major, packed. Owns its bytes; immutable and thread-safe.
class MemoryTensor : public TensorSource {
 public:
  /// `bytes` must hold exactly shape × dtype; throws Error(usage) otherwise.
  MemoryTensor(std::string name, DType dtype, std::vector<int64_t> shape,
               std::vector<std::byte> bytes);

  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;

 private:
  std::string name_;
  DType dtype_;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;
};

}  // namespace attnscope
