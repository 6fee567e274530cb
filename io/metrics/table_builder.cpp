#include "io/metrics/table_builder.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "core/reduce/head_fields.h"

namespace attnscope {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kErrorEnd = "_stderr";

bool is_measured(const std::string& name) {
  if (name == "sink_key") return false;
  if (name.size() > kErrorEnd.size() &&
      name.compare(name.size() - kErrorEnd.size(), kErrorEnd.size(), kErrorEnd) == 0) {
    return false;
  }
  const HeadField* const field = find_head_field(name);
  return field == nullptr || field->is_metric();
}

/// Its place among the numbers of docs/metrics.md; others behind them.
size_t field_place(const std::string& name) {
  const auto fields = head_fields();
  const HeadField* const field = find_head_field(name);
  return field == nullptr ? fields.size() : static_cast<size_t>(field - fields.data());
}

}  // namespace

TableBuilder::TableBuilder(std::string file) : file_(std::move(file)) {
  table_.name = std::filesystem::path(file_).filename().string();
}

void TableBuilder::add_run(const std::string& name) {
  if (!runs_.emplace(name, table_.runs.size()).second) {
    throw file_error(file_, "", "has two runs called " + one_line(name));
  }
  table_.runs.push_back(name);
}

void TableBuilder::begin_line(const std::string& run, const HeadName& head,
                              const std::string& head_class) {
  if (runs_.count(run) == 0) add_run(run);
  const size_t place = runs_[run];
  if (!heads_.emplace(place, head).second) {
    throw file_error(file_, one_line(head_words(head)),
                     run.empty() ? "is there twice" : "is there twice in run " + one_line(run));
  }
  table_.lines.push_back({place, head, head_class, {}});
  table_.lines.back().values.assign(table_.metrics.size(), kNoValue);
}

void TableBuilder::add(const std::string& metric, double value) {
  auto found = metrics_.find(metric);
  if (found == metrics_.end()) {
    if (!is_measured(metric)) return;
    found = metrics_.emplace(metric, table_.metrics.size()).first;
    table_.metrics.push_back(metric);
  }
  std::vector<double>& values = table_.lines.back().values;
  if (values.size() <= found->second) values.resize(found->second + 1, kNoValue);
  values[found->second] = value;
}

NumberTable TableBuilder::take() {
  if (table_.lines.empty()) throw file_error(file_, "", "has no heads");
  std::vector<size_t> order(table_.metrics.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return field_place(table_.metrics[a]) < field_place(table_.metrics[b]);
  });
  std::vector<std::string> metrics;
  for (const size_t i : order) metrics.push_back(table_.metrics[i]);
  for (NumberTable::Line& line : table_.lines) {
    line.values.resize(order.size(), kNoValue);
    std::vector<double> values;
    for (const size_t i : order) values.push_back(line.values[i]);
    line.values = std::move(values);
  }
  table_.metrics = std::move(metrics);
  return std::move(table_);
}

}  // namespace attnscope
