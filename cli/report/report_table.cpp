#include "cli/report/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
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
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

void set_number(HeadMetrics& metrics, const HeadField& field, double value) {
  std::visit(
      [&](auto member) {
        auto& place = metrics.*member;
        using Place = std::remove_reference_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, Estimate>) {
          place.value = value;
        } else if constexpr (std::is_same_v<Place, std::optional<double>>) {
          place = value;
        } else {
          place = static_cast<int64_t>(value);
        }
      },
      field.member);
}

/// The heads of a table, each over all runs that have it: the mean of its numbers, the most common
/// class.
struct TableHeads {
  std::vector<ReportHead> heads;
  std::vector<ReportColumn> columns;
  std::vector<HeadRecord> records;  ///< of the numbers that stats have

  TableHeads(const NumberTable& table, const std::vector<HeadName>& names);
};

std::string most_common(const std::map<std::string, int64_t>& classes) {
  std::string best;
  int64_t most = 0;
  for (const auto& [name, count] : classes) {
    if (count > most) best = name;
    most = std::max(most, count);
  }
  return best;
}

TableHeads::TableHeads(const NumberTable& table, const std::vector<HeadName>& names) {
  std::map<HeadName, std::vector<const NumberTable::Line*>> lines;
  for (const NumberTable::Line& line : table.lines) lines[line.head].push_back(&line);
  for (const std::string& metric : table.metrics) columns.push_back({metric, {}, {}});
  for (const HeadName& name : names) {
    std::map<std::string, int64_t> classes;
    HeadRecord record;
    record.name = name;
    for (const NumberTable::Line* line : lines[name]) {
      if (!line->head_class.empty()) ++classes[line->head_class];
    }
    for (size_t m = 0; m < columns.size(); ++m) {
      double sum = 0;
      int64_t count = 0;
      for (const NumberTable::Line* line : lines[name]) {
        if (std::isnan(line->values[m])) continue;
        sum += line->values[m];
        ++count;
      }
      const double mean =
          count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
      columns[m].values.push_back(mean);
      const HeadField* const field = find_head_field(columns[m].name);
      if (field != nullptr && !std::isnan(mean)) set_number(record.metrics, *field, mean);
    }
    const std::string head_class = most_common(classes);
    record.metrics.head_class = parse_head_class(head_class).value_or(HeadClass::undefined);
    heads.push_back({name, head_class, 0});
    records.push_back(std::move(record));
  }
  std::erase_if(columns, [](const ReportColumn& column) {
    return std::all_of(column.values.begin(), column.values.end(),
                       [](double value) { return std::isnan(value); });
  });
}

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

OrderedJson rows_json(const TableHeads& found) {
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
  const TableHeads found(table, names);
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
