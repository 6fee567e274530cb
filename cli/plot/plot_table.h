#pragma once

#include "cli/common/console.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_options.h"
#include "core/base/memory_budget.h"

namespace attnscope {

/// Throws Error(usage) where an option was given that belongs to captures, or where the plot is of
/// what no table has.
void refuse_computing_plot(const PlotRequest& request);

/// The selected heads of a table that `stats` or a probe wrote. `held` keeps what it takes. Throws
/// as refuse_computing_plot() and read_number_table().
PlotHeads plot_heads_of_table(PlotRequest request, const Console& console, MemoryBudget& budget,
                              MemoryReservation& held);

}  // namespace attnscope
