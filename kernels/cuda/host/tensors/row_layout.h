#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/host/profile/launch_log.h"
#include "kernels/cuda/host/tensors/head_format.h"

namespace attnscope::cuda {

enum class Operand { queries, keys };

/// Queues what brings `count` rows of a tensor, packed in device memory, to the layout of `format`:
/// `placed` rows, those beyond `count` zeros, whole units of HeadFormat::row_unit(). Not for
/// features, which the host makes.
void place_rows(const HeadFormat& format, Operand operand, const std::byte* source, int64_t count,
                int64_t placed, std::byte* to, cudaStream_t stream, LaunchLog& log);

/// Measures such rows, of formats in tiles: queues a kernel that raises `longest`, which began as
/// 0, to the bits of the largest |k|² …
void measure_keys(const HeadFormat& format, const std::byte* source, int64_t count,
                  int32_t* longest, cudaStream_t stream, LaunchLog& log);
/// … and one that says of each of `placed` rows whether |q|² is at most `most` (measure_rows.h).
void measure_queries(const HeadFormat& format, const std::byte* source, int64_t count,
                     int64_t placed, float most, int32_t* held, cudaStream_t stream,
                     LaunchLog& log);

}  // namespace attnscope::cuda
