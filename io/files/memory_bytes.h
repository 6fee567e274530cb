#pragma once

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "io/files/byte_source.h"

namespace attnscope {

/// Bytes that stand in memory, which stays its owner's and must outlive this. Thread-safe.
class MemoryBytes : public ByteSource {
 public:
  /// `name` is how messages call what the bytes were read from.
  MemoryBytes(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  void read_at(int64_t offset, std::span<std::byte> destination) const override {
    const auto wanted = static_cast<int64_t>(destination.size());
    if (offset < 0 || offset > size() || wanted > size() - offset) {
      throw file_error(name_, "byte " + std::to_string(offset),
                       "ends at byte " + std::to_string(size()));
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), destination.size(),
                destination.begin());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

}  // namespace attnscope
