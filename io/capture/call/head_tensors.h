#pragma once

#include <string>
#include <vector>

#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"

namespace attnscope {

/// Q, K and V of a call as [batch, head, token, channel]; V may be empty.
struct HeadTensors {
  HeadTensor q, k, v;
  /// Of those that are codes how they are scaled ("q: e4m3 with a scale a head"), and the names of
  /// the tensors of scales.
  std::vector<std::string> codes = {}, scale_names = {};
};

/// The tensors with their axes in the order that the fact layout says (bhsd where it says nothing);
/// a note for each that is rounded when it is read, or is codes with scales. Throws Error(file),
/// Error(usage) where the layout is none or does not fit.
HeadTensors head_tensors(const CallTensors& tensors, const CallFacts& facts,
                         const FactOverrides& overrides, std::vector<std::string>& notes);

}  // namespace attnscope
