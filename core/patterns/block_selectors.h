#pragma once

#include <cstdint>

#include "core/mask/mask.h"
#include "core/patterns/mask_pattern.h"
#include "core/patterns/scored_blocks.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// The blocks that a published kernel's selector picks for one head (MaskPattern::is_selector()),
/// as its code picks them, in double; docs/lab.md has the rules and their sources. Mask::dropped()
/// tells them, and what stands for the others. Scores are taken from `keeper`, where there is one.
/// Throws Error(usage) where the selector does not fit the call, Error(interrupted) on a stop.
Mask selected_blocks(const MaskPattern& pattern, const ScoredHead& head,
                     ScoreKeeper* keeper = nullptr);
/// Throws Error(usage) where it does not fit the call, or that head's own mask in batch item 0;
/// reads neither queries nor keys.
void check_selector(const MaskPattern& pattern, const AttentionProblem& problem, int64_t head);
/// True where its scores are of every entry of the map, which is computed for them.
bool reads_map(const MaskPattern& pattern);
/// Bytes that the mask keeps, at most, and those that selecting takes, the mask included; what
/// computing the map takes comes on top.
struct SelectorBytes {
  int64_t kept = 0, meanwhile = 0;
};
SelectorBytes selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem);
/// Bytes that measuring the mask takes beside what every mask does, for each of `rows` rows that
/// are under way, and with the table of the best blocks.
int64_t picked_measuring_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                               int64_t rows, bool with_table);
/// Bytes that selecting takes at least, all included.
int64_t least_selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem,
                             const TileBackend& backend);

}  // namespace attnscope
