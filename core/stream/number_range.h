#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>

#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The largest magnitudes of what a task reads of q and k; infinite where nobody looked.
struct TaskMagnitudes {
  double q = std::numeric_limits<double>::infinity();
  double k = std::numeric_limits<double>::infinity();
};

/// Marks a TileBackend whose products lose nothing to subnormal numbers.
class CountsSubnormals {
 public:
  virtual ~CountsSubnormals() = default;
};

/// The most that float32 kernels, which take subnormal numbers for 0, may lose of a logit (of
/// linear scores, of a product of features). `small_q`, `small_k`: q and k have numbers below
/// kSmallNumber that are not 0.
double lost_to_subnormals(const AttentionProblem& problem, int64_t head,
                          const TaskMagnitudes& magnitudes, bool small_q, bool small_k);
/// Numbers that are smaller may be 0 to a kernel, or the parts that it splits them into.
inline constexpr double kSmallNumber = 0x1p-102;

/// Throws Error(value) that names the first task whose weights the backend may get wrong because
/// numbers or products are subnormal. Reads q and k again where magnitudes alone do not exclude it,
/// which are none of a model's; Error(interrupted) soon after a stop.
void check_subnormals(std::span<const HeadTask> tasks, std::span<const TaskMagnitudes> magnitudes,
                      const TileBackend& backend, const std::stop_token& stop);

}  // namespace attnscope
