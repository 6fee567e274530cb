#include "io/metrics/compare_tables.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace attnscope {
namespace {

using Lines = std::vector<const NumberTable::Line*>;

/// The lines of each head, by their runs.
std::map<HeadName, Lines> lines_by_head(const NumberTable& table) {
  std::map<HeadName, Lines> heads;
  for (const NumberTable::Line& line : table.lines) heads[line.head].push_back(&line);
  for (auto& [name, lines] : heads) {
    std::sort(lines.begin(), lines.end(),
              [](const auto* x, const auto* y) { return x->run < y->run; });
  }
  return heads;
}

HeadRuns runs_of(const HeadName& name, const Lines& lines) {
  std::map<std::string, int64_t> often;
  int64_t all = 0;
  for (const NumberTable::Line* line : lines) {
    if (line->head_class.empty()) continue;
    ++often[line->head_class];
    ++all;
  }
  HeadRuns found{name, std::ssize(lines), "", std::numeric_limits<double>::quiet_NaN()};
  int64_t most = 0;
  for (const auto& [word, count] : often) {
    if (count <= most) continue;
    most = count;
    found.head_class = word;
    found.class_share = static_cast<double>(count) / static_cast<double>(all);
  }
  return found;
}

std::vector<double> values_of(const Lines& lines, size_t metric) {
  std::vector<double> values;
  for (const NumberTable::Line* line : lines) values.push_back(line->values[metric]);
  return values;
}

/// Of the runs that have both heads.
std::vector<double> run_differences(const Lines& of_a, const Lines& of_b, size_t metric) {
  std::map<size_t, double> other;
  for (const NumberTable::Line* line : of_b) other[line->run] = line->values[metric];
  std::vector<double> differences;
  for (const NumberTable::Line* line : of_a) {
    const auto found = other.find(line->run);
    if (found != other.end()) differences.push_back(line->values[metric] - found->second);
  }
  return differences;
}

/// A metric's places in both tables.
struct CommonMetric {
  size_t a = 0, b = 0;
};

std::vector<CommonMetric> common_metrics(const NumberTable& a, const NumberTable& b,
                                         TableComparison& names) {
  std::vector<CommonMetric> common;
  for (size_t i = 0; i < a.metrics.size(); ++i) {
    const auto found = std::find(b.metrics.begin(), b.metrics.end(), a.metrics[i]);
    if (found == b.metrics.end()) {
      names.left_out.push_back(a.metrics[i]);
      continue;
    }
    names.metrics.push_back(a.metrics[i]);
    common.push_back({i, static_cast<size_t>(found - b.metrics.begin())});
  }
  for (const std::string& metric : b.metrics) {
    if (std::find(a.metrics.begin(), a.metrics.end(), metric) == a.metrics.end()) {
      names.left_out.push_back(metric);
    }
  }
  return common;
}

}  // namespace

std::vector<HeadName> heads_of_table(const NumberTable& table) {
  std::vector<HeadName> heads;
  std::set<HeadName> taken;
  for (const NumberTable::Line& line : table.lines) {
    if (taken.insert(line.head).second) heads.push_back(line.head);
  }
  return heads;
}

TableComparison summarise_table(const NumberTable& table, std::span<const HeadName> heads) {
  const std::map<HeadName, Lines> lines = lines_by_head(table);
  TableComparison result;
  result.metrics = table.metrics;
  for (const HeadName& head : heads) {
    const Lines& own = lines.at(head);
    HeadChange change{runs_of(head, own), {}, {}};
    for (size_t m = 0; m < table.metrics.size(); ++m) {
      change.metrics.push_back({spread_of(values_of(own, m)), {}, {}});
    }
    result.heads.push_back(std::move(change));
  }
  return result;
}

TableComparison compare_tables(const NumberTable& a, const NumberTable& b,
                               std::span<const std::pair<HeadName, HeadName>> heads) {
  const std::map<HeadName, Lines> lines_a = lines_by_head(a), lines_b = lines_by_head(b);
  TableComparison result;
  result.has_b = true;
  result.is_paired = &a == &b;
  const std::vector<CommonMetric> common = common_metrics(a, b, result);
  for (const auto& [name_a, name_b] : heads) {
    const Lines &of_a = lines_a.at(name_a), &of_b = lines_b.at(name_b);
    HeadChange change{runs_of(name_a, of_a), runs_of(name_b, of_b), {}};
    for (const CommonMetric& metric : common) {
      MetricChange each{
          spread_of(values_of(of_a, metric.a)), spread_of(values_of(of_b, metric.b)), {}};
      each.change = result.is_paired ? spread_of(run_differences(of_a, of_b, metric.a))
                                     : spread_of_difference(each.a, each.b);
      change.metrics.push_back(each);
    }
    result.heads.push_back(std::move(change));
  }
  return result;
}

ClassTable class_table(const TableComparison& found) {
  std::vector<NamedClass> heads;
  for (const HeadChange& head : found.heads) {
    if (!head.a.head_class.empty()) heads.push_back({head.a.name, head.a.head_class});
  }
  return class_table(std::move(heads));
}

}  // namespace attnscope
