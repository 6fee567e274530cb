#include "cli/plot/plot.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/plot/plot_words.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Series stand side by side within so much of a layer's room.
constexpr double kSpread = 0.6;

/// By branch, step and, where nobody recorded the step, forward.
using SeriesKey = std::tuple<std::string, int64_t, int64_t>;
SeriesKey series_of(const HeadName& name) {
  const ModelPlace& place = name.place;
  return {name.branch, name.step, place.unrecorded.step ? place.forward.forward : -1};
}

/// "cond step 10", of these what is recorded and differs.
std::string series_name(const HeadName& name, bool branches, bool steps) {
  std::string text;
  if (branches && !name.place.unrecorded.branch) text = one_line(name.branch);
  if (!steps) return text;
  const bool is_forward = name.place.unrecorded.step;
  return fmt::format("{}{}{} {}", text, text.empty() ? "" : ", ", is_forward ? "forward" : "step",
                     is_forward ? name.place.forward.forward : name.step);
}

/// The heads of one step and branch that have an entropy.
struct EntropySeries {
  HeadName first;
  std::map<size_t, std::vector<size_t>> heads;  ///< [layer], places among the records
};

std::map<SeriesKey, EntropySeries> entropy_series(std::span<const HeadRecord> records,
                                                  std::span<const LayerHeads> layers) {
  std::map<SeriesKey, EntropySeries> all;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const size_t place : layers[layer].heads) {
      const HeadRecord& record = records[place];
      if (!record.metrics.entropy.value || !std::isfinite(*record.metrics.entropy.value)) continue;
      EntropySeries& series = all[series_of(record.name)];
      if (series.heads.empty()) series.first = record.name;
      series.heads[layer].push_back(place);
    }
  }
  return all;
}

double mean_entropy(std::span<const HeadRecord> records, const std::vector<size_t>& places) {
  double sum = 0;
  for (const size_t place : places) sum += *records[place].metrics.entropy.value;
  return sum / static_cast<double>(places.size());
}

/// Draws one series, `shift` right of its layers' middle.
void add_series(Plot& plot, std::span<const HeadRecord> records, std::span<const LayerHeads> layers,
                const EntropySeries& series, double shift) {
  ChartSeries dots, means;
  dots.line = false;
  dots.dots = true;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto found = series.heads.find(layer);
    const double x = static_cast<double>(layer) + shift;
    if (found == series.heads.end()) {
      means.points.push_back({x, std::nan("")});
      continue;
    }
    const double mean = mean_entropy(records, found->second);
    means.points.push_back({x, mean});
    for (const size_t place : found->second) {
      const HeadName& name = records[place].name;
      const double entropy = *records[place].metrics.entropy.value;
      dots.points.push_back({x, entropy});
      plot.numbers.rows.push_back({step_value(name), branch_value(name), layer_value(layers[layer]),
                                   layers[layer].name, name.batch, name.head, entropy, mean});
      ++plot.heads;
    }
  }
  plot.chart.series.push_back(std::move(means));
  plot.chart.series.push_back(std::move(dots));
}

}  // namespace

Plot plot_entropy(const PlotHeads& heads) {
  const std::vector<LayerHeads> layers = heads_by_layer(heads.records);
  const auto all = entropy_series(heads.records, layers);
  if (all.empty()) {
    throw usage_error(
        fmt::format("--what entropy: no head has one: scores that are not normalised, "
                    "all rows masked{}",
                    heads.is_table ? ", or a table that lacks the number" : ""));
  }
  Plot plot;
  plot.numbers.columns = {"step",  "branch", "layer",   "name",
                          "batch", "head",   "entropy", "layer_mean"};
  const SeriesKey first = all.begin()->first, last = all.rbegin()->first;
  const bool branches = std::get<0>(first) != std::get<0>(last);
  bool steps = false;
  for (const auto& [key, series] : all) {
    steps |= std::get<1>(key) != std::get<1>(first) || std::get<2>(key) != std::get<2>(first);
  }
  std::vector<std::string> names;
  std::vector<size_t> which, drawn;
  for (const auto& [key, series] : all) {
    const double place = static_cast<double>(names.size()) + 0.5;
    add_series(plot, heads.records, layers, series,
               kSpread * (place / static_cast<double>(all.size()) - 0.5));
    which.insert(which.end(), 2, names.size());
    names.push_back(series_name(series.first, branches, steps));
    for (const auto& [layer, places] : series.heads) {
      drawn.insert(drawn.end(), places.begin(), places.end());
    }
  }
  name_series(plot.chart, names, which, branches ? "branch and step" : "");
  if (const size_t others = heads.records.size() - drawn.size(); others > 0) {
    plot.notes.push_back(left_out_heads(others, kWithoutShares));
  }
  plot.chart.x.title = "layer";
  plot.chart.x.names = layer_names(layers);
  plot.chart.y.title = "entropy of a row in nats, mean over rows";
  plot.chart.text =
      plot_text(heads, plot, "entropy over depth: a dot a head, a line through the means", drawn);
  return plot;
}

}  // namespace attnscope
