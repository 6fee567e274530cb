#include "cli/diff/diff_tables_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/common/class_lines.h"
#include "cli/common/head_table.h"
#include "cli/common/text_table.h"
#include "cli/diff/diff_report.h"
#include "core/base/error.h"
#include "core/base/number_order.h"
#include "io/files/json_types.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

OrderedJson number_json(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}
OrderedJson word_json(const std::string& word) {
  return word.empty() ? OrderedJson() : OrderedJson(word);
}

OrderedJson summary_json(const TableReport& report, const HeadChange& head) {
  OrderedJson json = name_json(head.a.name);
  json["class"] = word_json(head.a.head_class);
  json["class_share"] = number_json(head.a.class_share);
  json["runs"] = head.a.runs;
  for (size_t i = 0; i < head.metrics.size(); ++i) {
    const std::string& name = report.found.metrics[i];
    const RunSpread& spread = head.metrics[i].a;
    json[name + "_mean"] = number_json(spread.mean);
    json[name + "_std"] = number_json(spread.deviation);
    json[name + "_ci95"] = number_json(spread.interval);
  }
  return json;
}

OrderedJson pair_change_json(const TableReport& report, const HeadChange& head) {
  OrderedJson json = heads_of_pair_json(head.a.name, head.b.name);
  json["a_class"] = word_json(head.a.head_class);
  json["b_class"] = word_json(head.b.head_class);
  json["a_runs"] = head.a.runs;
  json["b_runs"] = head.b.runs;
  for (size_t i = 0; i < head.metrics.size(); ++i) {
    const std::string& name = report.found.metrics[i];
    const MetricChange& metric = head.metrics[i];
    json[name + "_a"] = number_json(metric.a.mean);
    json[name + "_b"] = number_json(metric.b.mean);
    json[name + "_difference"] = number_json(metric.change.mean);
    json[name + "_ci95"] = number_json(metric.change.interval);
  }
  return json;
}

OrderedJson changes_json(const TableComparison& found) {
  OrderedJson list = OrderedJson::array();
  for (const ClassChange& change : class_changes(class_table(found))) {
    OrderedJson json = name_json(change.head);
    json["before_step"] = change.before_step;
    json["before"] = change.before;
    json["after"] = change.after;
    list.push_back(std::move(json));
  }
  return list;
}

// ---- for people

/// "0.1235 ± 0.01".
std::string spread_text(double value, double half) {
  return std::isnan(value) || std::isnan(half)
             ? number_cell(value)
             : fmt::format("{} ±{:>7.2g}", number_cell(value), half);
}

/// The numbers that stand in a line for people.
constexpr std::string_view kShown[] = {"entropy", "text_mass", "same_frame_mass",
                                       "same_position_mass", "sink_mass"};

/// Their places, of those that there are.
std::vector<size_t> shown_metrics(const TableReport& report) {
  const TableComparison& found = report.found;
  std::vector<size_t> places;
  for (size_t i = 0; i < found.metrics.size(); ++i) {
    const bool shown =
        std::find(std::begin(kShown), std::end(kShown), found.metrics[i]) != std::end(kShown);
    if (shown || found.metrics[i] == report.sort) {
      places.push_back(i);
    }
  }
  // Of a table that has none of them, the first that it has.
  for (size_t i = 0; places.empty() && i < std::min(std::size(kShown), found.metrics.size()); ++i) {
    places.push_back(i);
  }
  return places;
}

std::string class_text(const HeadRuns& head) {
  return head.head_class.empty() ? "-" : one_line(head.head_class);
}

void print_summaries(const TableReport& report) {
  const TableComparison& found = report.found;
  TextTable table;
  table.add_column("head", TextTable::Side::left);
  table.add_column("class", TextTable::Side::left);
  table.add_column("share");
  table.add_column("runs");
  const std::vector<size_t> shown = shown_metrics(report);
  for (const size_t i : shown) table.add_column(one_line(found.metrics[i]));
  for (const HeadChange& head : found.heads) {
    const bool named = !head.a.head_class.empty();
    std::vector<std::string> cells{head_label(head.a.name), class_text(head.a),
                                   named ? fmt::format("{:.2f}", head.a.class_share) : "-",
                                   std::to_string(head.a.runs)};
    for (const size_t i : shown) {
      cells.push_back(spread_text(head.metrics[i].a.mean, head.metrics[i].a.interval));
    }
    table.add_line(std::move(cells));
  }
  fmt::print("{}", table.text());
}

void print_pairs(const TableReport& report) {
  const TableComparison& found = report.found;
  TextTable table;
  table.add_column("head (A - B)", TextTable::Side::left);
  table.add_column("class", TextTable::Side::left);
  const std::vector<size_t> shown = shown_metrics(report);
  for (const size_t i : shown) table.add_column(one_line(found.metrics[i]) + " ");
  bool any_clear = false;
  for (const HeadChange& head : found.heads) {
    const std::string a = class_text(head.a), b = class_text(head.b);
    std::vector<std::string> cells{head_label(head.a.name), a == b ? a : a + " - " + b};
    for (const size_t i : shown) {
      const MetricChange& metric = head.metrics[i];
      any_clear = any_clear || metric.is_clear();
      cells.push_back(spread_text(metric.change.mean, metric.change.interval) +
                      (metric.is_clear() ? "*" : " "));
    }
    table.add_line(std::move(cells));
  }
  fmt::print("{}", table.text());
  if (any_clear) fmt::print("*: further from 0 than half of its 95 % interval\n");
}

/// The list of the JSON that a table has.
DiffList list_of_tables(const TableReport& report, bool classes) {
  if (classes) {
    return {"class_changes",
            "change",
            {"step", "layer", "branch", "kind", "batch", "head", "before_step", "before", "after"}};
  }
  return report.found.has_b ? DiffList{} : DiffList{"heads", "entry", {}};
}

}  // namespace

OrderedJson tables_json(const TableReport& report) {
  OrderedJson json{{"format", "attnscope-diff-metrics/1"}, {"a", report.a}};
  if (report.found.has_b) {
    json["b"] = report.b;
    json["paired"] = report.found.is_paired;
  }
  OrderedJson& list = json[report.found.has_b ? "pairs" : "heads"] = OrderedJson::array();
  for (const HeadChange& head : report.found.heads) {
    list.push_back(report.found.has_b ? pair_change_json(report, head)
                                      : summary_json(report, head));
  }
  if (!report.found.has_b) json["class_changes"] = changes_json(report.found);
  return json;
}

void sort_tables(const std::string& sort, TableReport& report) {
  TableComparison& found = report.found;
  const NumberOrder order = NumberOrder::parse(sort, found.metrics);
  report.sort = order.name;
  const auto metric = std::find(found.metrics.begin(), found.metrics.end(), order.name);
  const auto place = static_cast<size_t>(metric - found.metrics.begin());
  order.sort(found.heads, [&](const HeadChange& head) {
    const MetricChange& number = head.metrics[place];
    return std::optional((found.has_b ? number.change : number.a).mean);
  });
}

void print_tables(const TableReport& report, bool classes) {
  if (report.found.has_b) return print_pairs(report);
  if (!classes) print_summaries(report);
  const ClassTable table = class_table(report.found);
  print_class_table(table, true);
  if (classes && !table.compares()) fmt::print("no head has classes at several steps\n");
}

std::string tables_csv(const TableReport& report, bool classes) {
  return diff_csv(tables_json(report), list_of_tables(report, classes));
}

void write_tables(const TableReport& report, bool classes, const std::filesystem::path& path,
                  bool force) {
  write_diff(tables_json(report), path, force, list_of_tables(report, classes));
}

}  // namespace attnscope
