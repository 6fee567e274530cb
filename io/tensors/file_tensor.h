#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/byte_source.h"

namespace attnscope {

/// How a tensor's elements stand in its file: element i begins at byte
/// offset + Σ i[a]·strides[a]·(bytes of an element).
struct FileTensorLayout {
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};
  int64_t offset = 0;  ///< of the first element in the file, in bytes
  /// In elements, ≥ 0, in any order; 0 repeats. Empty: packed_strides().
  std::vector<int64_t> strides = {};
  bool big_endian = false;
};

/// The strides of a packed array whose last axis is the fastest. The shape's elements must fit
/// int64_t.
std::vector<int64_t> packed_strides(std::span<const int64_t> shape);

/// A tensor in an open file, or a view of one: transposed, sliced, expanded. Every element must lie
/// within `file`. What has a checksum is verified at the first read. Immutable; thread-safe.
class FileTensor : public TensorSource {
 public:
  FileTensor(std::shared_ptr<const ByteSource> file, std::string name, FileTensorLayout layout);

  DType dtype() const override { return layout_.dtype; }
  std::span<const int64_t> shape() const override { return layout_.shape; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;
  bool prefers_order() const override { return file_->unpacks_in_order(); }

 private:
  std::shared_ptr<const ByteSource> file_;
  std::string name_;
  FileTensorLayout layout_;
};

/// Reverses the bytes of each of `count` elements of `element` bytes.
void swap_bytes(std::byte* data, int64_t count, int64_t element);

/// "[2, 24, 17776, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace attnscope
