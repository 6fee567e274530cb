#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/patterns/mask_summary.h"
#include "core/problem/head_name.h"

namespace attnscope {

/// One line of the table: a mask on a head.
struct MaskRow {
  HeadName name;
  std::string mask;
  MaskQuality quality;
  std::optional<double> time_ratio;  ///< masked / unmasked seconds, where it was asked for
};

/// A line as JSON; `timed` adds time_ratio.
nlohmann::ordered_json mask_row_json(const MaskRow& row, bool timed);
/// What mask_row_json() made the JSON of. Throws nlohmann's exceptions where it is no such line.
MaskRow parse_mask_row(const nlohmann::ordered_json& json);

/// {"format": "attnscope-mask/1", "heads": [...]}; `timed` adds time_ratio.
nlohmann::ordered_json mask_json(const std::vector<MaskRow>& rows, bool timed);
/// A table for people on standard output.
void print_mask_table(const std::vector<MaskRow>& rows, bool timed);

}  // namespace attnscope
