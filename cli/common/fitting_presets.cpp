#include "cli/common/fitting_presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "io/capture/facts/model_preset.h"
#include "io/files/json_types.h"

namespace attnscope {
std::vector<FittingPreset> fitting_presets(const AttentionProblem& problem) {
  std::vector<FittingPreset> fitting;
  const int64_t queries = problem.num_queries();
  for (const ModelPreset& preset : model_presets()) {
    // Text of any length would fit most sequences.
    const bool open = preset.text_varies && preset.text.count > 0;
    const bool cross = preset.is_cross(queries, problem.num_keys());
    const bool whole = queries == preset.tokens() && problem.num_keys() == queries;
    if (preset.head_dim != problem.head_dim() || open || (!whole && !cross)) continue;
    const TokenGrid grid = TokenGrid::video(preset.cells() + (cross ? 0 : preset.text.count),
                                            preset.grid, cross ? 0 : preset.text.count,
                                            cross ? TextPlace::none : preset.text.place);
    const std::string tiles =
        preset.has_tiles() ? fmt::format(" in tiles of {}", fmt::join(preset.tile, "x")) : "";
    fitting.push_back({std::string(preset.name), grid.grid_text() + tiles,
                       cross ? std::string("all") : grid.text_text()});
  }
  return fitting;
}

std::string preset_text(const FittingPreset& preset) {
  return fmt::format("{} ({}, text {})", preset.name, preset.grid, preset.text);
}

OrderedJson presets_json(const std::vector<FittingPreset>& presets) {
  OrderedJson list = OrderedJson::array();
  for (const FittingPreset& preset : presets) {
    list.push_back({{"name", preset.name}, {"grid", preset.grid}, {"text", preset.text}});
  }
  return list;
}

}  // namespace attnscope
