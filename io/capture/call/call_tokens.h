#pragma once

#include "core/problem/attention_problem.h"
#include "core/problem/token_grid.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// Which call it is: step, layer, branches and kind, by the facts and the tensors' shapes. Throws
/// as bad_fact() where they do not agree.
CallId call_id(const CallFacts& facts, const HeadTensors& heads);

/// What the tokens of a call are.
struct CallTokens {
  TokenGrid queries;
  TokenGrid keys;  ///< the text of cross attention is theirs
};

/// The grids that the facts grid, axes, text and text_valid say: of factorised attention the part
/// that the call sees. Throws Error(wrong) naming the call where they do not fit its tensors.
CallTokens call_tokens(const CallFacts& facts, const HeadTensors& heads, CallKind kind,
                       ErrorCode wrong);

/// The facts with grid and text, as they were taken where nothing told them.
CallFacts with_token_facts(CallFacts facts, const CallTokens& tokens, CallKind kind);

}  // namespace attnscope
