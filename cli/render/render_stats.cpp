#include "cli/render/render_stats.h"

#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/stored_input.h"
#include "cli/render/render_report.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/export/read/stored_stats.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"

namespace attnscope {
namespace {

/// One head's number; the heads of a file, in its order.
struct HeadNumber {
  HeadName name;
  double value = 0;
};

std::vector<HeadNumber> numbers_of(const StoredStats& stats, const std::string& metric) {
  std::vector<HeadNumber> heads;
  for (const StoredStatsGroup& g : stats.groups) {
    const auto found = g.numbers.find(metric);
    for (size_t b = 0; b < g.batch.size(); ++b) {
      for (size_t h = 0; h < g.heads.size(); ++h) {
        const StoredFacts& f = g.facts;
        const double value = found == g.numbers.end() ? std::numeric_limits<double>::quiet_NaN()
                                                      : found->second[b * g.heads.size() + h];
        heads.push_back({stored_name(f, g.batch[b], g.heads[h]), value});
      }
    }
  }
  return heads;
}

void check_metric(const StoredStats& stats, const std::string& metric, const std::string& file) {
  std::vector<std::string> known;
  for (const StoredStatsGroup& g : stats.groups) {
    for (const auto& [name, values] : g.numbers) {
      if (name == metric) return;
      if (&g == &stats.groups.front()) known.push_back(name);
    }
  }
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + one_line(name);
  const std::string nearest = nearest_word(metric, known);
  throw usage_error(
      metric.empty()
          ? fmt::format("--picture heatmap needs --metric NAME ({})", list)
          : fmt::format("--metric {}: {} does not hold it{} ({})", one_line(metric), file,
                        nearest.empty() ? "" : ", did you mean " + nearest + "?", list));
}

}  // namespace

int render_stats(const RenderRequest& o, const Console& console) {
  if (o.dry_run) throw usage_error("--dry-run: nothing of an export is computed");
  check_export_options(o.capture, o.run);
  const std::filesystem::path path = o.capture.capture;
  const std::string file = one_line(path.filename().string());
  const StoredStats stats = read_stored_stats(path);
  check_metric(stats, o.metric, file);
  const std::vector<std::filesystem::path> inputs(1, path);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  const std::vector<HeadNumber> all = numbers_of(stats, o.metric);
  std::vector<HeadName> names, selected;
  for (const HeadNumber& head : all) names.push_back(head.name);
  std::vector<double> values;
  for (const size_t i : select_stored(names, o.selection)) {
    selected.push_back(names[i]);
    values.push_back(all[i].value);
  }
  const HeadTable heads = table_of_heads(selected);
  MetricTable table;
  table.names = heads.names;
  table.values.assign(table.names.rows.size() * table.names.columns.size(),
                      std::numeric_limits<float>::quiet_NaN());
  auto json_values = OrderedJson::array();
  for (size_t i = 0; i < selected.size(); ++i) {
    table.values[heads.places[i]] = static_cast<float>(values[i]);
    json_values.push_back(
        {{"head", head_label(selected[i])},
         {o.metric, std::isnan(values[i]) ? OrderedJson(nullptr) : OrderedJson(values[i])}});
  }
  const StoredFacts& facts = stats.groups.front().facts;
  const std::string capture = one_line(stats.stored.capture);
  table.text.title = facts.model.empty() ? capture : one_line(facts.model);
  const int64_t runs = stats.groups.front().runs;
  table.text.lines = {joined_parts({facts.model.empty() ? "" : capture, one_line(o.metric),
                                    runs > 1 ? fmt::format("mean of {} runs", runs) : "",
                                    fmt::format("stats in {}", file)})};
  table.value_name = o.metric;
  ColourOptions colours = o.colours;
  // Of a few numbers none is an outlier.
  if (colours.range == "auto") colours.range = "p0:p100";
  table.colours = parse_colours(colours, ScaleKind::linear);
  const Canvas canvas = HeatTablePicture(table).draw();
  write_canvas_png(canvas, o.out, o.force);
  report_written(o, console,
                 {"heatmap",
                  selected.size(),
                  canvas.width(),
                  canvas.height(),
                  {},
                  {{"metric", o.metric}, {"values", std::move(json_values)}}});
  return kExitOk;
}

}  // namespace attnscope
