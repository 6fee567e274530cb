#include "io/capture/call/collected_call.h"

#include "io/capture/call/fact_guess.h"
#include "io/capture/call/fact_options.h"

namespace attnscope {

CollectedCall collect_facts(OpenedCall call, const FactOverrides& overrides) {
  CallFacts facts = std::move(call.facts);
  if (call.guess) facts = with_guesses(std::move(facts), call.tensors, overrides, call.notes);
  facts = with_options(std::move(facts), call.tensors.mask != nullptr, overrides, call.notes);
  facts = with_told(std::move(facts), overrides, call.notes);
  facts.require_values();
  HeadTensors heads = head_tensors(call.tensors, facts, overrides, call.notes);
  if (overrides.preset) facts = with_preset(std::move(facts), heads, *overrides.preset);
  return {std::move(call.file), std::move(facts),        std::move(call.tensors),
          std::move(heads),     std::move(call.unknown), std::move(call.notes)};
}

}  // namespace attnscope
