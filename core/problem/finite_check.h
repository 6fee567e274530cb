#pragma once

#include <cstdint>
#include <stop_token>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// Reads rows `tokens` of a head for NaN and Inf. Throws Error(value) naming tensor, place and
/// value of the first, Error(interrupted) soon after a stop is requested. Memory: 128 KiB, or a
/// row.
void check_rows_finite(const HeadTensor& tensor, int64_t batch, int64_t head, IndexRange tokens,
                       const std::stop_token& stop = {});

}  // namespace attnscope
