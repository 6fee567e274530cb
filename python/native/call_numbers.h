#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/run/where_question.h"
#include "cli/stats/stats_options.h"
#include "core/heads/head_record.h"
#include "core/patterns/mask_summary.h"
#include "python/native/call_maps.h"

namespace attnscope {

/// As the command's settle_where(), on an engine: puts into `selection.holding` the heads that
/// `where` holds for, over numbers found as `numbers` says. Returns the records of those whose
/// numbers were compared.
HeadRecords settle_where(SelectionOptions& selection, const StatsOptions& numbers,
                         const Capture& capture, EngineRun& run);

/// The numbers of heads, as `attnscope stats` has them: of the calls of a capture that
/// options.selection names, sorted as the command sorts them.
std::vector<HeadRecord> measure_capture(const Capture& capture, const StatsOptions& options,
                                        EngineRun& run);
/// Of some heads of one call, in the order of batch items and heads.
std::vector<HeadRecord> measure_call(const CallHandle& call, std::span<const HeadPlace> heads,
                                     const StatsOptions& options, EngineRun& run);

/// Reads the words "sample", "band", "exact", "threshold", "with", "sort" and "top"; the others
/// choose calls and heads (selection_of_words). Throws Error(usage) as check_measure().
StatsOptions stats_options_of_words(const std::map<std::string, std::string>& words);
/// Throws Error(usage) as the command does.
void check_measure(const StatsOptions& options);

/// How masks are measured, in the words of `attnscope mask`.
struct MaskWords {
  std::vector<std::string> masks;
  int64_t block = 0;  ///< of masks from files; 0: not given
  bool exact = false;
  bool lab = false;  ///< the numbers of `attnscope lab`, whose lists and ranges are told apart
};
/// Measures how much of a head each mask keeps, in the masks' order. `others`, where it is not
/// null, gets a line for each mask whose blocks are of another head. Throws as the command does.
std::vector<MaskQuality> measure_masks_of(const CallHandle& call, const HeadPlace& place,
                                          const MaskWords& words, EngineRun& run,
                                          std::vector<std::string>* others = nullptr);

}  // namespace attnscope
