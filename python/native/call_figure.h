#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/native/call_maps.h"
#include "web/figure/head/figure_choice.h"

namespace attnscope {

/// A request for the figure page of one head.
struct FigureQuestion {
  FigureChoice choice;
  std::string command;  ///< what makes this page
};

/// A page, or why there can be none.
struct FigureAnswer {
  std::string page;            ///< HTML; empty where there is none
  std::string refusal;         ///< one line; empty where there is a page
  int64_t rows = 0, cols = 0;  ///< queries and keys that it has
  /// The page's base, of weights: the means of blocks, [base_rows, base_cols].
  int64_t base_rows = 0, base_cols = 0;
  std::vector<float> base;
};

/// The page of `attnscope figure`. Throws Error(usage) for a part that the head has not, and what
/// entries_of() throws; what no page can carry is the answer's refusal.
FigureAnswer figure_of(const CallHandle& call, const HeadPlace& head,
                       const FigureQuestion& question, EngineRun& run);

}  // namespace attnscope
