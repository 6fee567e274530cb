#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_overrides.h"

namespace attnscope {

/// How the origin of a grid or token map begins that the only fitting preset has; its name follows.
inline constexpr std::string_view kGuessedFromPreset = "guessed from preset ";

/// The facts with what was neither recorded nor given as an option and can be guessed from the
/// tensors' shapes: the layout (the axis that fits the grid, the order in which the heads of k
/// divide those of q, a model's token count, else the longer axis) and grid and text (those of the
/// only preset with this token count and head dimension). Each guess adds a note. Throws
/// Error(usage) where q has no layout at all, or q and k could be heads that share keys as well as
/// queries and keys that differ in number.
CallFacts with_guesses(CallFacts facts, const CallTensors& tensors, const FactOverrides& overrides,
                       std::vector<std::string>& notes);

}  // namespace attnscope
