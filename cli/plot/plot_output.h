#pragma once

#include <filesystem>
#include <span>

#include "cli/common/console.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_options.h"

namespace attnscope {

/// Throws where -o or --data cannot be written, `inputs` being read.
void check_plot_targets(const PlotRequest& request, std::span<const std::filesystem::path> inputs);

/// Draws the plot, writes it and the numbers, says so, and prints them where that was asked for.
void write_plot(const PlotRequest& request, const Plot& plot, const Console& console);

}  // namespace attnscope
