#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/patterns/mask_summary.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// How masks are measured.
struct MaskRun {
  const TileBackend& backend;
  MemoryBudget& budget;
  std::stop_token stop;
  /// Oracle and output errors on all rows instead of kSampledRows spread ones.
  bool exact = false;

  static constexpr int64_t kSampledRows = 256;
};

/// Measures the masks on one head (all its rows and keys), in mask order. `progress` is told which
/// share of the head is done, from one thread at a time. Throws Error(interrupted) on a stop.
std::vector<MaskQuality> score_masks(const HeadTask& head, std::span<const Mask> masks,
                                     const MaskRun& run,
                                     const std::function<void(double)>& progress);

}  // namespace attnscope
