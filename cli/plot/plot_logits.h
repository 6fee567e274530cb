#pragma once

#include <optional>

#include "cli/plot/plot.h"
#include "cli/plot/plot_capture.h"

namespace attnscope {

/// How often which logits occur, layer by layer. Nothing in a run that is
/// only planned. Throws Error(usage) where none of the heads has what is drawn.
std::optional<Plot> plot_logits(const PlotWork& work);

}  // namespace attnscope
