#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// Looks for NaN and Inf, in memory of its own: 256 KiB, or a row. What lies in the memory of a
/// device is looked at there. Not thread-safe.
class FiniteCheck {
 public:
  /// Reads rows `tokens` of a head. Returns the largest magnitude, but of what a device looked at.
  /// Throws Error(value) naming tensor, place and value of the first, Error(interrupted) soon after
  /// a stop is requested, Error(unavailable) where a device finds what the host does not.
  std::optional<float> check(const HeadTensor& tensor, int64_t batch, int64_t head,
                             IndexRange tokens, const std::stop_token& stop = {});

 private:
  float check_on_host(const HeadTensor& tensor, int64_t batch, int64_t head, IndexRange tokens,
                      const std::stop_token& stop);

  std::vector<std::byte> rows_;
};

}  // namespace attnscope
