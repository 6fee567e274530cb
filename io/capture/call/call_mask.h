#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mask/mask.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/call_tokens.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/capture/facts/mask_fact.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The mask of a call.
struct CallMask {
  Mask mask;
  std::optional<MaskFact> fact;                ///< what a capture says of it; nothing: none can
  std::shared_ptr<const TensorSource> source;  ///< of a mask that a tensor tells; else null
};

/// The mask of one of mask_words() for a call with these tokens; nothing where the text is another.
/// `option` is how messages name it. Throws Error(usage) where its sizes are none, or do not fit
/// the tokens.
std::optional<CallMask> word_mask(const std::string& text, const std::string& option,
                                  const TokenGrid& queries, const TokenGrid& keys);

/// The mask that the fact says, which an option may have set: a pattern or a tensor beside q and k,
/// and by option alone a window or a file, and that of packed sequences (a note where there are
/// several). Throws Error(file) where what was recorded is wrong, Error(usage) where an option is.
CallMask call_mask(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                   const CallTokens& tokens, const FactOverrides& overrides,
                   const ReadControl& control, std::vector<std::string>& notes);

}  // namespace attnscope
