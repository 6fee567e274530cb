#pragma once

#include "core/problem/score.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"

namespace attnscope {

/// How a call's logits become weights, and its tensors as this takes them.
struct CallScore {
  ScoreFunction score = ScoreFunction::softmax;
  HeadTensors heads;
};

/// The score that was recorded, or that an option says. Queries of linear:normaliser are divided by
/// the tensor of that name. Throws Error(file), Error(usage) where the fact is none, where the
/// tensor is missing, of another shape or of no use, and where option and fact differ.
CallScore call_score(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides);

}  // namespace attnscope
