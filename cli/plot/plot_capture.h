#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/plot/plot.h"
#include "cli/plot/plot_options.h"
#include "cli/run/stream_run.h"
#include "io/capture/capture.h"

namespace attnscope {

/// A capture's heads that plots are computed of. Borrows all.
struct PlotWork {
  const PlotRequest& request;
  StreamRun& run;
  const std::vector<SelectedCall>& calls;
  const std::string& title;  ///< the model, or the capture's name
};

/// "256 rows of each head"; empty where all are taken.
std::string plot_rows_words(const PlotRequest& request);

/// The heads' numbers as `stats` finds them; nothing in a run that is only planned.
std::optional<PlotHeads> plot_heads_of_capture(const PlotWork& work);

}  // namespace attnscope
