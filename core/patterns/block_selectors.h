#pragma once

#include <cstdint>
#include <stop_token>

#include "core/mask/mask.h"
#include "core/patterns/mask_pattern.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// The blocks that a published kernel's selector picks for one head (MaskPattern::is_selector()),
/// as its code picks them, in double; docs/masks.md has the rules and their sources. With
/// `pattern.tail`, the mask has terms for what it drops. Throws Error(usage) where the selector
/// does not fit the call, Error(interrupted) on a stop.
Mask selected_blocks(const MaskPattern& pattern, const AttentionProblem& problem, int64_t batch,
                     int64_t head, std::stop_token stop);
/// Throws Error(usage) where it does not fit the call; reads nothing.
void check_selector(const MaskPattern& pattern, const AttentionProblem& problem);
/// Bytes that the mask keeps, at most, and those that selecting takes, the mask included.
struct SelectorBytes {
  int64_t kept = 0, meanwhile = 0;
};
SelectorBytes selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem);

}  // namespace attnscope
