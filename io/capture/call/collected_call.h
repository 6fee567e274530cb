#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/call/head_tensors.h"
#include "io/capture/call/opened_call.h"
#include "io/capture/facts/fact_overrides.h"

namespace attnscope {

/// One call with every fact that is known of it, wherever it came from, and Q, K, V as they say.
struct CollectedCall {
  std::filesystem::path file;
  CallFacts facts;
  CallTensors tensors;
  HeadTensors heads;
  std::vector<std::string> unknown;
  std::vector<std::string> notes;
};

/// Adds to what was recorded what is guessed, where it may be, then what options say, then what a
/// preset knows; each guess and each option that changes a fact adds a note. Throws Error(file)
/// where recorded facts are wrong, Error(usage) where others are.
CollectedCall collect_facts(OpenedCall call, const FactOverrides& overrides);

}  // namespace attnscope
