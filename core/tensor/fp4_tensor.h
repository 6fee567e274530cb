#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The formats of 4-bit floating numbers with a scale a block of channels: NVIDIA's, and that of
/// the OCP Microscaling Formats specification 1.0.
enum class Fp4Format : uint8_t { nvfp4, mxfp4 };

/// A tensor of bytes (u8) that hold codes of e2m1. Shares the bytes; thread-safe like them.
class Fp4Bytes : public TensorSource {
 public:
  /// `format`: nothing where only the type of a code is known.
  Fp4Bytes(std::shared_ptr<const TensorSource> bytes, std::optional<Fp4Format> format)
      : bytes_(std::move(bytes)), format_(format) {}

  std::optional<Fp4Format> format() const { return format_; }
  DType dtype() const override { return DType::u8; }
  std::span<const int64_t> shape() const override { return bytes_->shape(); }
  const std::string& name() const override { return bytes_->name(); }
  bool prefers_order() const override { return bytes_->prefers_order(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    bytes_->read(begin, count, destination);
  }

 private:
  const std::shared_ptr<const TensorSource> bytes_;
  const std::optional<Fp4Format> format_;
};

/// The tensor itself where it is one of e2m1 codes, else null.
const Fp4Bytes* as_fp4(const TensorSource& tensor);

/// Which of a byte's two codes comes first.
enum class NibbleOrder : uint8_t { low_first, high_first };

/// The codes of a tensor of bytes that hold two each along the last axis, one a byte (0 to 15):
/// [..., d / 2] → u8 [..., d]. Reads take no memory beyond the box. Shares the bytes; thread-safe
/// like them.
std::shared_ptr<const TensorSource> nibble_tensor(std::shared_ptr<const TensorSource> bytes,
                                                  NibbleOrder order);

/// The value of an e2m1 code: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives from 8 on. Bits above
/// the fourth do not count.
float e2m1_value(uint8_t code);

/// The value of an e8m0 code, 2^(code − 127); NaN of 255.
float e8m0_value(uint8_t code);

}  // namespace attnscope
