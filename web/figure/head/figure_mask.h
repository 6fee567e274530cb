#pragma once

#include <cstdint>

#include "web/engine/page_mask.h"
#include "web/figure/head/figure_cut.h"

namespace attnscope {

/// Runs of keys that a page carries at most: 1 MiB of them.
inline constexpr int64_t kMostPageRuns = int64_t{1} << 17;

/// The keys that the problem's mask leaves of the cut, as lists of runs of the cut's keys that its
/// rows share; the problem must have a mask without biases. Throws FigureRefusal where rows have
/// more than kMostPageRuns different runs, which a page cannot carry.
PageMask page_mask_of(const FigureCut& cut);

}  // namespace attnscope
