#include "cli/report/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/shell_words.h"
#include "cli/common/stored_input.h"
#include "cli/report/report_facts.h"
#include "cli/report/report_output.h"
#include "cli/report/report_parts.h"
#include "cli/report/standing_heads.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/files/output_file.h"
#include "io/metrics/compare_tables.h"
#include "io/metrics/read_table.h"
#include "io/metrics/table_heads.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

/// A table's heads as the page has them.
struct TablePage {
  std::vector<ReportHead> heads;
  std::vector<ReportColumn> columns;  ///< those of which any head has a number
  std::vector<HeadRecord> records;    ///< of the numbers that stats have

  TablePage(const NumberTable& table, const std::vector<HeadName>& names) {
    TableHeads found = mean_heads(table, names);
    for (size_t i = 0; i < names.size(); ++i) heads.push_back({names[i], found.classes[i], 0});
    for (size_t m = 0; m < table.metrics.size(); ++m) {
      std::vector<double>& values = found.values[m];
      const bool any = !std::all_of(values.begin(), values.end(),
                                    [](double value) { return std::isnan(value); });
      if (any) columns.push_back({table.metrics[m], std::move(values), {}});
    }
    records = std::move(found.records);
  }
};

OrderedJson about_table(const NumberTable& table, size_t heads) {
  OrderedJson about = OrderedJson::array();
  const auto add = [&](const char* label, const std::string& text) {
    about.push_back({{"label", label}, {"text", text}, {"how", "recorded"}});
  };
  add("table", file_name(table.name));
  std::set<int64_t> steps, layers;
  for (const NumberTable::Line& line : table.lines) {
    if (!line.head.place.unrecorded.step) steps.insert(line.head.step);
    if (!line.head.place.unrecorded.layer && line.head.layer != kNoLayer) {
      layers.insert(line.head.layer);
    }
  }
  add("steps", std::to_string(steps.size()));
  add("layers", std::to_string(layers.size()));
  add("heads", std::to_string(heads));
  if (table.runs.size() > 1) {
    add("runs",
        fmt::format("{}: numbers are means over them, classes the most common", table.runs.size()));
  }
  return about;
}

OrderedJson rows_json(const TablePage& found) {
  OrderedJson rows = OrderedJson::array();
  for (size_t i = 0; i < found.heads.size(); ++i) {
    OrderedJson& row = rows.emplace_back(name_json(found.heads[i].name));
    row["class"] =
        found.heads[i].head_class.empty() ? OrderedJson() : OrderedJson(found.heads[i].head_class);
    for (const ReportColumn& column : found.columns) {
      const double value = column.values[i];
      row[column.name] = std::isnan(value) ? OrderedJson() : OrderedJson(value);
    }
  }
  return rows;
}

void refuse_computing(const ReportRequest& o) {
  std::string given = capture_option_given(o.capture, o.run);
  if (o.sample > 0) given = "--sample";
  if (given.empty()) return;
  throw usage_error(
      fmt::format("{}: {} is a table of numbers, of which nothing is computed (the option belongs "
                  "to captures)",
                  given, one_line(o.capture.capture)));
}

}  // namespace

int report_table(ReportRequest o, const Console& console) {
  refuse_computing(o);
  const std::vector<std::filesystem::path> inputs(1, o.capture.capture);
  OutputFile::check_target(o.out, {.force = o.force, .inputs = inputs});
  MemoryBudget budget(memory_limit(o.run));
  MemoryReservation held;
  const NumberTable table = read_number_table(o.capture.capture, budget, held);
  settle_where_of_table(o.selection, table);
  const std::vector<HeadName> all = heads_of_table(table);
  std::vector<HeadName> names;
  for (const size_t i : select_stored(all, o.selection, console)) names.push_back(all[i]);
  const TablePage found(table, names);
  ReportParts parts;
  parts.facts = first_facts(o, "table", file_name(o.capture.capture));
  parts.facts["about"] = about_table(table, names.size());
  parts.lacks = {
      "a table has numbers alone: no maps, films and words (attnscope report of the capture has "
      "them)",
      "no comparison of a head with the others of its call", "sink_mass is of the heaviest key"};
  add_heads(parts.facts, found.heads, found.columns, "");
  std::vector<StandingNumbers> numbers;
  for (const HeadRecord& record : found.records) numbers.push_back({&record, {}});
  const std::vector<StandingRule> rules = standing_heads(numbers);
  parts.facts["stands_out"] = standing_facts(rules);
  parts.facts["not_reached"] = OrderedJson::array();
  write_report(o, parts, {"", rows_json(found), found.heads, rules, {}}, console);
  return kExitOk;
}

}  // namespace attnscope
