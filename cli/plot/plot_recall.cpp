#include "cli/plot/plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plot/plot_words.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Room on the left of the smallest density, and the widest axis that begins there.
ValueRange density_range(const std::vector<LayerCurve>& curves) {
  double least = 0.5;
  for (const LayerCurve& curve : curves) least = std::min(least, curve.density.front());
  return {least / 1.25, 1};
}

/// Places of the heads that count keys.
std::vector<size_t> heads_with_curves(std::span<const HeadRecord> records) {
  std::vector<size_t> places;
  for (size_t i = 0; i < records.size(); ++i) {
    if (has_keys_curve(records[i].metrics)) places.push_back(i);
  }
  return places;
}

void add_numbers(PlotNumbers& numbers, const LayerCurve& curve) {
  for (size_t i = 0; i < curve.keys.size(); ++i) {
    const OrderedJson density =
        curve.density.empty() ? OrderedJson() : OrderedJson(curve.density[i]);
    numbers.rows.push_back({layer_value(curve.layer), curve.layer.name, curve.heads,
                            keys_curve()[i].share, curve.keys[i], density});
  }
}

}  // namespace

Plot plot_recall(const PlotHeads& heads) {
  std::vector<LayerCurve> curves = layer_curves(heads.records, heads.keys_seen);
  Plot plot;
  const std::vector<size_t> drawn = heads_with_curves(heads.records);
  if (drawn.empty()) {
    throw usage_error(fmt::format(
        "--what recall: no head counts keys (keys_for_50 … keys_for_99): scores that are not "
        "normalised, all rows masked{}",
        heads.is_table ? ", or a table that lacks these numbers" : ""));
  }
  plot.heads = drawn.size();
  if (const size_t others = heads.records.size() - drawn.size(); others > 0) {
    plot.notes.push_back(left_out_heads(others, kWithoutShares));
  }
  const bool has_density = std::all_of(curves.begin(), curves.end(),
                                       [](const LayerCurve& c) { return !c.density.empty(); });
  plot.numbers.columns = {"layer", "name", "heads", "recall", "keys", "density"};
  std::vector<std::string> names;
  std::vector<size_t> which;
  for (const LayerCurve& curve : curves) {
    ChartSeries& series = plot.chart.series.emplace_back();
    series.dots = true;
    for (size_t i = 0; i < curve.keys.size(); ++i) {
      series.points.push_back(
          {has_density ? curve.density[i] : curve.keys[i], keys_curve()[i].share});
    }
    add_numbers(plot.numbers, curve);
    which.push_back(names.size());
    names.push_back(curves.size() > kMostNamedSeries ? layer_number(curve.layer)
                                                     : curve.layer.name);
  }
  name_series(plot.chart, names, which, "layer");
  plot.chart.x = {has_density ? "largest weights, as a share of the keys that a row may see"
                              : "number of largest weights",
                  true,
                  has_density,
                  {},
                  {}};
  if (has_density) {
    plot.chart.x.range = density_range(curves);
  } else {
    plot.notes.emplace_back(heads.is_table
                                ? "the table does not tell how many keys a row may see"
                                : "not of all layers is known how many keys a row may see");
  }
  plot.chart.y = {
      "attention mass that the largest weights hold", false, true, ValueRange{0.45, 1.005}, {}};
  plot.chart.text =
      plot_text(heads, plot,
                has_density ? "recall against density, mean over a layer's heads"
                            : "recall against the number of keys, mean over a layer's heads",
                drawn);
  return plot;
}

}  // namespace attnscope
