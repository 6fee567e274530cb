#pragma once

#include <optional>

#include "cli/common/console.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_capture.h"
#include "cli/plot/plot_options.h"
#include "core/base/memory_budget.h"

namespace attnscope {

/// The mean mass of each key, layer by layer, over its place in the sequence: of the heads that
/// have one number of keys, of the most heads. Nothing in a run that is
/// only planned. Throws Error(usage) where none of the heads has what is drawn.
std::optional<Plot> plot_keys(const PlotWork& work);
/// Of a table that has the array column_mass. `held` keeps what it takes. Throws as
/// plot_heads_of_table(), and Error(usage) where it has no such array.
Plot plot_keys_of_table(PlotRequest request, const Console& console, MemoryBudget& budget,
                        MemoryReservation& held);

}  // namespace attnscope
