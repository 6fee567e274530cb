#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// A type and a shape as messages have them: "bool [2, 26]".
std::string tensor_text(DType dtype, std::span<const int64_t> shape);

/// A tensor that tells a mask token by token: [tokens], the same for all batch items, or [B,
/// tokens]. Immutable and thread-safe like its source.
class TokenTensor {
 public:
  /// Nothing is read. Throws Error(usage) where `source` has another type, other axes or no
  /// elements.
  TokenTensor(std::shared_ptr<const TensorSource> source, DType dtype);

  int64_t items() const { return items_; }
  int64_t tokens() const { return tokens_; }
  /// Which of the items is that of a batch item.
  int64_t item_of(int64_t batch) const { return items_ == 1 ? 0 : batch; }
  /// Throws Error(usage) where it does not have so many items and tokens.
  void check_shape(int64_t batch, int64_t tokens) const;
  /// Reads the elements of one item; T is the type's.
  template <typename T>
  std::vector<T> read(int64_t item) const {
    std::vector<T> values(static_cast<size_t>(tokens_));
    read_bytes(item, reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  const TensorSource& source() const { return *source_; }

 private:
  void read_bytes(int64_t item, std::byte* out) const;

  std::shared_ptr<const TensorSource> source_;
  int64_t items_ = 1, tokens_ = 0;
};

}  // namespace attnscope
