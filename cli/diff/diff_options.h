#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/picture_options.h"
#include "cli/common/query_options.h"
#include "cli/diff/other_heads.h"

namespace attnscope {

/// How many of the rows that differ most are listed unless --top says otherwise.
inline constexpr int64_t kListedRows = 5;

struct DiffOptions {
  CaptureOptions capture;
  std::string second;
  SelectionOptions selection;
  OtherValues other;
  RunOptions run;
  std::string out;
  std::string product;  ///< empty: numbers
  QueryOptions queries;
  std::string pool = "max", colour_scale;  ///< empty: what suits the picture
  PictureOptions page;
  bool by_segment = false;
  int64_t sample = 0;
  std::optional<int64_t> top;  ///< of several pairs rows are listed where it is given
  std::string sort;
  bool classes = false;
  bool alone = false;
  bool csv = false;  ///< on standard output, instead of the table for people
  bool dry_run = false, json = false, force = false, quiet = false;
};

}  // namespace attnscope
