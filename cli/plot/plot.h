#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/heads/layer_heads.h"
#include "io/files/json_types.h"
#include "io/pictures/chart/chart.h"

namespace attnscope {

/// The numbers that a plot draws, as --data and --json tell them.
struct PlotNumbers {
  std::vector<std::string> columns;
  OrderedJson rows = OrderedJson::array();  ///< of lists, a value a column; null: there is none
};

/// A chart, its numbers, and what it does not show.
struct Plot {
  Chart chart;
  PlotNumbers numbers;
  size_t heads = 0;                ///< that are drawn
  std::vector<std::string> notes;  ///< what it lacks, and why
};

/// The numbers of heads that plots are drawn from, of a capture or of a table.
struct PlotHeads {
  std::string title;                ///< the model, or the input's name
  std::string how;                  ///< "256 rows of each head", "mean of 3 runs"; or empty
  std::vector<HeadRecord> records;  ///< in the order of HeadOrder
  bool is_table = false;
  KeysSeen keys_seen;  ///< knows nothing of a table's heads
};

// Each throws Error(usage) where none of the heads has what is drawn.

/// How much of a row's mass its largest weights hold, a curve a layer: over the share of the keys
/// that a row may see, or over their number where that is not known.
Plot plot_recall(const PlotHeads& heads);
/// Entropy layer by layer: a dot a head, a line through the layers' means; a series each step and
/// branch.
Plot plot_entropy(const PlotHeads& heads);
/// The shares of heads of each class: of every step and branch, or layer by layer where there is
/// one.
Plot plot_classes(const PlotHeads& heads);

}  // namespace attnscope
