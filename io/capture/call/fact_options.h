#pragma once

#include <string>
#include <vector>

#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/capture/facts/model_preset.h"

namespace attnscope {

/// The facts with what options say in place of what was recorded or guessed, a note for each that
/// was another, and with the fact mask in any case: a tensor mask beside q and k (`has_mask`) is a
/// recorded one, told or not.
CallFacts with_options(CallFacts facts, bool has_mask, const FactOverrides& overrides,
                       std::vector<std::string>& notes);

/// The facts with what --as tells of every call, a note for each that was recorded as another.
/// Throws Error(usage) as parse_told_fact().
CallFacts with_told(CallFacts facts, const FactOverrides& overrides,
                    std::vector<std::string>& notes);

/// The facts with the grid and text of a model where they say nothing. Throws Error(usage) where
/// the call is not the model's.
CallFacts with_preset(CallFacts facts, const HeadTensors& heads, const std::string& preset);

/// States the preset's whole sequence as a token map, with so much text.
void set_map(CallFacts& facts, const ModelPreset& preset, const TextSpan& text,
             const std::string& origin);

}  // namespace attnscope
