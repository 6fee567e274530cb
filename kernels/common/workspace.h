#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/checked_math.h"

namespace attnscope {

/// Hands out aligned pieces of a caller's workspace one after the other. Constructed without bytes
/// it only counts, so that a layout function written once gives both the pieces and their size.
class Workspace {
 public:
  static constexpr int64_t kAlignment = 64;

  Workspace() = default;
  explicit Workspace(std::span<std::byte> bytes) : begin_(bytes.data()), capacity_(bytes.size()) {
    const auto misaligned = reinterpret_cast<uintptr_t>(begin_) % kAlignment;
    skipped_ = (kAlignment - misaligned) % kAlignment;
  }

  /// `count` values of T at an address that is a multiple of 64, not initialised; null when only
  /// counting.
  template <typename T>
  T* take(int64_t count) {
    const auto at = static_cast<size_t>(used_);
    used_ += round_up(count * static_cast<int64_t>(sizeof(T)), kAlignment);
    if (begin_ == nullptr) return nullptr;
    assert(skipped_ + static_cast<size_t>(used_) <= capacity_ && "workspace_bytes() was not kept");
    return reinterpret_cast<T*>(begin_ + skipped_ + at);
  }

  /// The bytes that a workspace at any address must have.
  int64_t bytes_needed() const { return used_ + kAlignment; }

 private:
  std::byte* begin_ = nullptr;
  size_t capacity_ = 0;
  size_t skipped_ = 0;
  int64_t used_ = 0;
};

}  // namespace attnscope
