#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/patterns/mask_summary.h"
#include "core/problem/head_name.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The quality of a mask as saved in blocks: they hold all that it keeps, and more.
struct SavedQuality {
  int64_t block = 0;  ///< tokens of one
  MaskQuality quality;
};

/// One line of the table: a mask on a head.
struct MaskRow {
  HeadName name;
  std::string mask;
  MaskQuality quality;
  std::optional<double> time_ratio = {};   ///< masked / unmasked seconds, where it was asked for
  std::optional<SavedQuality> saved = {};  ///< where they were
};

/// A number, null where it is undefined; counts as integers.
OrderedJson mask_number_json(const MaskQuality& quality, const MaskField& field);
/// A line as JSON; `timed` adds time_ratio.
OrderedJson mask_row_json(const MaskRow& row, bool timed);
/// Reads back a line that mask_row_json() wrote. Throws nlohmann's exceptions for any other JSON.
MaskRow parse_mask_row(const OrderedJson& json);

/// "wrote b.npy (blocks of 128: density 0.364, recall 0.908)", means over the heads.
std::string saved_text(const std::string& path, const std::vector<MaskRow>& rows);
/// A table for people on standard output.
void print_mask_table(const std::vector<MaskRow>& rows, bool timed);

}  // namespace attnscope
