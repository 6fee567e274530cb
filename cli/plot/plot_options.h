#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/common/capture_options.h"
#include "cli/common/parser.h"
#include "cli/common/picture_options.h"
#include "cli/run/stats_jobs.h"

namespace attnscope {

/// In the order of the names that --what takes.
enum class PlotKind : uint8_t { recall, entropy, classes, logits, keys };
std::string_view plot_name(PlotKind kind);

/// The values of the options of `attnscope plot`.
struct PlotRequest {
  CaptureOptions capture;
  SelectionOptions selection;
  RunOptions run;
  PictureOptions page;
  std::string what, out, data;
  int64_t sample = 0;  ///< 0: all rows
  bool exact = false;
  bool alone = false, dry_run = false, force = false, json = false, quiet = false;

  PlotKind kind() const;
  /// Which numbers of heads are found, as `stats` takes them.
  StatsChoice choice() const;
};

void add_plot_options(CommandParser& command, PlotRequest& request);
/// Throws Error(usage) where the options cannot be meant, whatever the input.
void check_plot_options(const PlotRequest& request);

}  // namespace attnscope
