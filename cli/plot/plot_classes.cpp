#include "cli/plot/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "cli/plot/plot_words.h"
#include "core/base/error.h"
#include "core/heads/class_table.h"
#include "io/pictures/class_colours.h"

namespace attnscope {
namespace {

using ClassCounts = std::array<size_t, kHeadClasses>;

/// The heads of one bar.
struct ClassBar {
  std::string name;
  OrderedJson step, branch, layer;
  ClassCounts counts{};

  size_t heads() const {
    size_t sum = 0;
    for (const size_t count : counts) sum += count;
    return sum;
  }
};

std::vector<ClassBar> bars_of_layers(std::span<const HeadRecord> records) {
  std::vector<ClassBar> bars;
  for (const LayerHeads& layer : heads_by_layer(records)) {
    const HeadName& name = records[layer.heads.front()].name;
    ClassBar& bar = bars.emplace_back(
        ClassBar{layer_number(layer), step_value(name), branch_value(name), layer_value(layer)});
    for (const size_t place : layer.heads) {
      ++bar.counts[static_cast<size_t>(records[place].metrics.head_class)];
    }
  }
  return bars;
}

std::vector<ClassBar> bars_of_steps(const ClassTable& table) {
  std::vector<ClassBar> bars;
  bool branches = false;
  for (const HeadName& column : table.columns) {
    branches |= column.branch != table.columns.front().branch;
  }
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const HeadName& column = table.columns[i];
    const ModelPlace& place = column.place;
    const std::string step =
        place.unrecorded.step ? place.forward.branch() : fmt::format("{}", column.step);
    ClassBar& bar =
        bars.emplace_back(ClassBar{branches ? one_line(column.branch) + " " + step : step,
                                   step_value(column), branch_value(column), OrderedJson()});
    for (const auto& row : table.rows) {
      if (row[i]) ++bar.counts[static_cast<size_t>(*parse_head_class(row[i]->head_class))];
    }
  }
  return bars;
}

/// The classes one on the other, from the first of HeadClass up.
void add_bars(Plot& plot, const std::vector<ClassBar>& bars) {
  plot.numbers.columns = {"step", "branch", "layer", "class", "heads", "of", "share"};
  std::vector<double> tops(bars.size());
  for (size_t c = 0; c < kHeadClasses; ++c) {
    ChartSeries series;
    const HeadClass which{static_cast<uint8_t>(c)};
    series.own = class_colour(which);
    series.line = false;
    series.name = which == HeadClass::undefined ? "no class" : std::string(head_class_name(which));
    bool any = false;
    for (size_t i = 0; i < bars.size(); ++i) {
      const size_t heads = bars[i].heads();
      const double share = static_cast<double>(bars[i].counts[c]) / static_cast<double>(heads);
      any |= share > 0;
      series.bases.push_back(tops[i]);
      tops[i] += share;
      series.points.push_back({static_cast<double>(i), tops[i]});
      plot.numbers.rows.push_back({bars[i].step, bars[i].branch, bars[i].layer,
                                   head_class_name(which), bars[i].counts[c], heads, share});
    }
    if (any) plot.chart.series.push_back(std::move(series));
  }
}

size_t count_of(std::span<const HeadRecord> records, auto&& is_so) {
  size_t count = 0;
  for (const HeadRecord& record : records) count += is_so(record) ? 1 : 0;
  return count;
}

/// How many have a class and no grid.
size_t heads_without_grid(const PlotHeads& heads) {
  const std::span<const HeadRecord> records = heads.records;
  const auto scored = [](const HeadRecord& record) {
    return record.metrics.temporal_score.value.has_value();
  };
  // A table may lack the column.
  if (heads.is_table && std::none_of(records.begin(), records.end(), scored)) return 0;
  return count_of(records, [&](const HeadRecord& record) {
    const HeadClass which = record.metrics.head_class;
    const bool may_lack =
        which == HeadClass::sink || which == HeadClass::text || which == HeadClass::global;
    return may_lack && !scored(record);
  });
}

}  // namespace

Plot plot_classes(const PlotHeads& heads) {
  const std::span<const HeadRecord> records = heads.records;
  const size_t unknown = count_of(records, [](const HeadRecord& record) {
    return record.metrics.head_class == HeadClass::undefined;
  });
  if (unknown == records.size()) {
    throw usage_error(
        fmt::format("--what classes: no head has a class: scores that are not "
                    "normalised, all rows masked{}",
                    heads.is_table ? ", or a table without the column class" : ""));
  }
  Plot plot;
  const ClassTable table = class_table(records);
  const bool over_steps = table.columns.size() > 1;
  const std::vector<ClassBar> bars = over_steps ? bars_of_steps(table) : bars_of_layers(records);
  add_bars(plot, bars);
  plot.heads = records.size();
  const size_t gridless = heads_without_grid(heads);
  if (gridless > 0) {
    plot.notes.push_back(
        fmt::format("no grid: {} of {} heads, which cannot be temporal, spatial or local", gridless,
                    records.size()));
  }
  bool branches = false;
  for (const ClassBar& bar : bars) {
    plot.chart.x.names.push_back({static_cast<double>(plot.chart.x.names.size()), bar.name});
    branches |= bar.branch != bars.front().branch;
  }
  plot.chart.x.title = !over_steps ? "layer"
                       : branches  ? "branch and diffusion step"
                                   : "diffusion step";
  plot.chart.y = {"share of the heads", false, true, ValueRange{0, 1}, {}};
  std::vector<size_t> drawn(records.size());
  for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = i;
  plot.chart.text = plot_text(
      heads, plot,
      over_steps ? "classes of heads over the diffusion steps" : "classes of heads over depth",
      drawn);
  return plot;
}

}  // namespace attnscope
