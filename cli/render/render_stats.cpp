#include "cli/render/render_stats.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/stored_input.h"
#include "cli/render/render_report.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/base/nearest_word.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/read_table.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// One head's number; the heads of a file, in its order.
struct HeadNumber {
  HeadName name;
  double value = 0;
};

/// A number of a head by itself; null where the variable holds others.
const std::vector<double>* numbers_in(const MetricVariable& variable) {
  const bool is_number = variable.of_heads && variable.shape.empty();
  return is_number ? std::get_if<std::vector<double>>(&variable.values) : nullptr;
}

/// The mean over runs; NaN where no run has one. `first` is the head's place in the first run.
double mean_over_runs(const std::vector<double>& values, size_t first, size_t heads) {
  double sum = 0;
  int64_t count = 0;
  for (size_t at = first; at < values.size(); at += heads) {
    if (std::isnan(values[at])) continue;
    sum += values[at];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<HeadNumber> numbers_of(const RunTable& stats, const std::string& metric) {
  std::vector<HeadNumber> heads;
  for (const MetricGroup& group : stats.groups) {
    const MetricVariable* const variable = group.find(metric);
    const std::vector<double>* const values = variable ? numbers_in(*variable) : nullptr;
    const size_t all = group.batch.size() * group.heads.size();
    HeadName name = group.call.name;
    for (size_t place = 0; place < all; ++place) {
      name.batch = group.batch[place / group.heads.size()];
      name.head = group.heads[place % group.heads.size()];
      heads.push_back({name, values ? mean_over_runs(*values, place, all)
                                    : std::numeric_limits<double>::quiet_NaN()});
    }
  }
  return heads;
}

void check_metric(const RunTable& stats, const std::string& metric, const std::string& file) {
  std::vector<std::string> known;
  for (const MetricGroup& group : stats.groups) {
    for (const MetricVariable& variable : group.variables) {
      if (numbers_in(variable) == nullptr) continue;
      if (variable.name == metric) return;
      if (&group == &stats.groups.front()) known.push_back(variable.name);
    }
  }
  std::sort(known.begin(), known.end());
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + one_line(name);
  const std::string nearest = nearest_word(metric, known);
  throw usage_error(
      metric.empty()
          ? fmt::format("--picture heatmap needs --metric NAME ({})", list)
          : fmt::format("--metric {}: {} does not hold it{} ({})", one_line(metric), file,
                        nearest.empty() ? "" : ", did you mean " + nearest + "?", list));
}

std::vector<HeadNumber> selected_numbers(const RenderRequest& o, const std::filesystem::path& path,
                                         const RunTable& stats, const Console& console) {
  const std::vector<HeadNumber> all = numbers_of(stats, o.metric);
  std::vector<HeadName> names;
  for (const HeadNumber& head : all) names.push_back(head.name);
  SelectionOptions selection = o.selection;
  if (asks_for_numbers(selection)) {
    MemoryBudget budget(memory_limit(o.run));
    MemoryReservation held;
    settle_where_of_table(selection, read_number_table(path, budget, held));
  }
  std::vector<HeadNumber> selected;
  for (const size_t i : select_stored(names, selection, console)) selected.push_back(all[i]);
  return selected;
}

}  // namespace

int render_stats(const RenderRequest& o, const Console& console) {
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
  check_export_options(o.capture, o.run);
  const std::filesystem::path path = o.capture.capture;
  const std::string file = one_line(path.filename().string());
  const RunTable stats = read_stats_file(path, MetricPart::numbers);
  check_metric(stats, o.metric, file);
  const std::vector<std::filesystem::path> inputs(1, path);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  const std::vector<HeadNumber> numbers = selected_numbers(o, path, stats, console);
  std::vector<HeadName> selected;
  for (const HeadNumber& head : numbers) selected.push_back(head.name);
  const HeadTable heads = table_of_heads(selected);
  MetricTable table;
  table.names = heads.names;
  table.values.assign(table.names.rows.size() * table.names.columns.size(),
                      std::numeric_limits<float>::quiet_NaN());
  auto json_values = OrderedJson::array(), drawn = OrderedJson::array();
  for (size_t i = 0; i < selected.size(); ++i) {
    const double value = numbers[i].value;
    table.values[heads.places[i]] = static_cast<float>(value);
    const OrderedJson number = std::isnan(value) ? OrderedJson() : OrderedJson(value);
    json_values.push_back({{"head", head_label(selected[i])}, {o.metric, number}});
    drawn.push_back(name_json(selected[i]));
    drawn.back()[o.metric] = number;
  }
  const std::string capture = one_line(stats.capture);
  const std::string model = one_line(stats.groups.front().call.model);
  table.text.title = model.empty() ? capture : model;
  const size_t runs = stats.runs.size();
  table.text.lines = {joined_parts({model.empty() ? "" : capture, one_line(o.metric),
                                    runs > 1 ? fmt::format("mean of {} runs", runs) : "",
                                    fmt::format("stats in {}", file)})};
  table.value_name = o.metric;
  ColourOptions colours = o.colours;
  // Of a few numbers none is an outlier.
  if (colours.range == "auto") colours.range = "p0:p100";
  table.colours = parse_colours(colours, ScaleKind::linear);
  table.look = style_of(o.page, o.out);
  const HeatTablePicture picture(table);
  MemoryBudget pixels(memory_limit(o.run));
  const MemoryReservation memory = reserve_page(pixels, {picture.width(), picture.height()});
  const Canvas canvas = picture.draw();
  write_picture(canvas, table.look, table.text.title, o.out, o.force);
  report_written(o, console,
                 {"heatmap",
                  selected.size(),
                  canvas.width(),
                  canvas.height(),
                  {},
                  {{"metric", o.metric}, {"values", std::move(json_values)}},
                  std::move(drawn)});
  return kExitOk;
}

}  // namespace attnscope
