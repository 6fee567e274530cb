#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/byte_source.h"

namespace attnscope {

/// How a tensor's elements stand in its file.
struct FileTensorLayout {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< of the first element in the file
  bool fortran_order = false;
  bool big_endian = false;
};

/// A tensor in an open file. Sizes must have been validated. What has a checksum is verified at the
/// first read. Immutable; thread-safe.
class FileTensor : public TensorSource {
 public:
  FileTensor(std::shared_ptr<const ByteSource> file, std::string name, FileTensorLayout layout)
      : file_(std::move(file)), name_(std::move(name)), layout_(std::move(layout)) {}

  DType dtype() const override { return layout_.dtype; }
  std::span<const int64_t> shape() const override { return layout_.shape; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override;

 private:
  std::shared_ptr<const ByteSource> file_;
  std::string name_;
  FileTensorLayout layout_;
};

/// "[2, 24, 17776, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace attnscope
