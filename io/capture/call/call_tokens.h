#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/problem/token_grid.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"

namespace attnscope {

/// Which call it is: step, layer, branches and kind, by the facts and the tensors' shapes. Throws
/// as bad_fact() where they do not agree.
CallId call_id(const CallFacts& facts, const HeadTensors& heads);

/// The token grids of a call's queries and keys, and the words of its text.
struct CallTokens {
  TokenGrid queries;
  TokenGrid keys;  ///< the text of cross attention is theirs
  /// Words of the text, [1 or batch][text token]; empty where they were not recorded.
  std::vector<std::vector<std::string>> words = {};
  std::set<std::string> tensors = {};  ///< names of tensors that a token map is made of
};

/// The grids that the facts grid, axes, text, text_valid and tokens say: of factorised attention
/// the part that the call sees; or the token map that queries and keys state. Throws Error(wrong)
/// naming the call where they do not fit its tensors.
CallTokens call_tokens(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                       CallKind kind, ErrorCode wrong);

/// The facts with grid and text, as they were taken where nothing told them.
CallFacts with_token_facts(CallFacts facts, const CallTokens& tokens, CallKind kind);

}  // namespace attnscope
