#pragma once

#include <string>
#include <vector>

#include "core/problem/attention_problem.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A model whose sequence length (for cross attention: both lengths) and head dimension a call has.
struct FittingPreset {
  std::string name, grid, text;
};
std::vector<FittingPreset> fitting_presets(const AttentionProblem& problem);
/// "cogvideox-5b (13x30x45, 226@start)".
std::string preset_text(const FittingPreset& preset);
OrderedJson presets_json(const std::vector<FittingPreset>& presets);

}  // namespace attnscope
