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
/// Throws Error(usage) where it does not fit the call, or that head's own mask in batch item 0;
/// reads neither queries nor keys.
void check_selector(const MaskPattern& pattern, const AttentionProblem& problem, int64_t head);
/// The tiles that `ssta` keeps of so many latent frames where nobody tells, as HunyuanVideo 1.5's
/// code has them.
int64_t usual_ssta_blocks(const TokenGrid& tokens);
/// Bytes that the mask keeps, at most, and those that selecting takes, the mask included.
struct SelectorBytes {
  int64_t kept = 0, meanwhile = 0;
};
SelectorBytes selector_bytes(const MaskPattern& pattern, const AttentionProblem& problem);

}  // namespace attnscope
