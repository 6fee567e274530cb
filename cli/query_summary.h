#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/tile_sink.h"
#include "io/volume_files.h"

namespace attnscope {

/// What a head's row says in figures: masses of text, video and each frame, and its `top` largest
/// keys by name. `row` has a value for every key of the task; `lse` may be NaN (not one row's).
nlohmann::ordered_json summarise_row(const QueryVolume& volume, const HeadTask& task,
                                     std::span<const float> row, double lse,
                                     const std::vector<std::string>& tokens, int64_t top);

/// The summaries of all heads as text on standard output.
void print_row_summaries(const nlohmann::ordered_json& heads);

}  // namespace attnscope
