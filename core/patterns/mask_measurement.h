#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  /// The recall of the best picks of as many blocks, where all rows are measured exactly.
  bool best_blocks = false;
  /// All from the sampled rows, recall and densities as well (those of picked blocks are exact): a
  /// small part of the time. Not with `exact`.
  bool sampled_alone = false;

  static constexpr int64_t kSampledRows = 256;
  /// Rows that a worker has under way, at most.
  static constexpr int64_t kTileRows = 64;
};

/// The quality of each mask on one head (all its rows and keys), in mask order; the rows are
/// streamed once, and the sampled ones again. `progress`, where it is not empty, is told which
/// share of the head is done, from one thread at a time. Throws Error(interrupted) on a stop,
/// Error(resource) where the budget has no room.
std::vector<MaskQuality> measure_masks(const HeadTask& head, std::span<const Mask> masks,
                                       const MaskMeasurement& how,
                                       const std::function<void(double)>& progress = {});

/// Bytes that measure_masks() takes of the budget at least for so many masks, without
/// picked_measuring_bytes().
int64_t least_measurement_bytes(const HeadTask& head, size_t masks, const MaskMeasurement& how);

/// measure_masks() with MaskMeasurement::sampled_alone.
std::vector<MaskQuality> sample_masks(const HeadTask& head, std::span<const Mask> masks,
                                      MaskMeasurement how);

/// A mask, and the blocks that a kernel of it computes, in tokens; nothing: it has none of its own.
struct MeasuredEdit {
  Mask mask;
  std::optional<int64_t> block;
};
/// The numbers of the lab for each edit: of all rows with `how.exact`, with the recall of the best
/// blocks, else of the sampled ones. Otherwise as measure_masks().
std::vector<MaskQuality> measure_edits(const HeadTask& head, std::span<const MeasuredEdit> edits,
                                       MaskMeasurement how,
                                       const std::function<void(double)>& progress = {});

/// The share of blocks of `block` × `block` tokens, 128 where nobody tells, of which the mask keeps
/// anything: what a kernel of such blocks visits. Of 64 spread rows of blocks unless `how.exact`.
/// Throws Error(interrupted) on a stop.
double visited_blocks(const HeadTask& head, const Mask& mask, std::optional<int64_t> block,
                      const MaskMeasurement& how);

}  // namespace attnscope
