#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/patterns/mask_summary.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// How masks are measured. Borrows.
struct MaskMeasurement {
  const TileBackend& backend;
  MemoryBudget& budget;
  std::stop_token stop = {};
  /// Oracle and output errors on all rows instead of kSampledRows spread ones.
  bool exact = false;
  /// Output errors, where the problem has V.
  bool outputs = true;

  static constexpr int64_t kSampledRows = 256;
};

/// The quality of each mask on one head (all its rows and keys), in mask order; the rows are
/// streamed once, and the sampled ones again. `progress`, where it is not empty, is told which
/// share of the head is done, from one thread at a time. Throws Error(interrupted) on a stop,
/// Error(resource) where the budget has no room.
std::vector<MaskQuality> measure_masks(const HeadTask& head, std::span<const Mask> masks,
                                       const MaskMeasurement& how,
                                       const std::function<void(double)>& progress = {});

/// Bytes that measure_masks() takes of the budget at least for so many masks.
int64_t least_measurement_bytes(const HeadTask& head, size_t masks, const MaskMeasurement& how);

/// As measure_masks(), but of the sampled rows alone, densities and recall included; it takes a
/// small part of the time.
std::vector<MaskQuality> sample_masks(const HeadTask& head, std::span<const Mask> masks,
                                      const MaskMeasurement& how);

}  // namespace attnscope
