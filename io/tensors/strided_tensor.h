#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/byte_source.h"

namespace attnscope {

/// How a tensor's elements stand in a run of them, in elements: element i is at
/// offset + Σ i[a]·strides[a].
struct StridedLayout {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  ///< ≥ 0; any order; 0 repeats
  int64_t offset = 0;
};

/// Whether every element of the view lies within the first `count` elements.
bool fits_storage(const StridedLayout& layout, int64_t count);

/// A view of little-endian elements: transposed, sliced, expanded. It must fit `bytes`. What has a
/// checksum is verified at the first read. Immutable; thread-safe.
class StridedTensor : public TensorSource {
 public:
  StridedTensor(std::shared_ptr<const ByteSource> bytes, std::string name, StridedLayout layout)
      : bytes_(std::move(bytes)), name_(std::move(name)), layout_(std::move(layout)) {}

  DType dtype() const override { return layout_.dtype; }
  std::span<const int64_t> shape() const override { return layout_.shape; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;

 private:
  std::shared_ptr<const ByteSource> bytes_;
  std::string name_;
  StridedLayout layout_;
};

}  // namespace attnscope
