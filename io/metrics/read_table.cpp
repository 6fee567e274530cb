#include "io/metrics/read_table.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/error.h"
#include "io/export/read/stored_stats.h"
#include "io/metrics/metric_file.h"
#include "io/metrics/metric_journal.h"
#include "io/metrics/table_builder.h"
#include "io/metrics/table_texts.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// Of a table in memory: doubles, names and classes, and what its reader holds beside them, which
/// of JSON is a tree of all its values.
int64_t table_bytes(const std::string& extension, int64_t file_bytes) {
  constexpr int64_t kOfBytes = 8, kOfJson = 64, kLeast = 64 << 10;
  return kLeast + file_bytes * (extension == ".json" ? kOfJson : kOfBytes);
}

void read_capture_stats(const fs::path& path, TableBuilder& table) {
  const StoredStats stats = read_stored_stats(path);
  for (const StoredStatsGroup& g : stats.groups) {
    HeadName name{g.facts.step, g.facts.layer, g.facts.branch, g.facts.kind, 0, 0, g.facts.place};
    size_t place = 0;
    for (const int64_t item : g.batch) {
      for (const int64_t head : g.heads) {
        name.batch = item;
        name.head = head;
        table.begin_line("", name, g.classes.empty() ? "" : g.classes[place]);
        for (const auto& [metric, values] : g.numbers) table.add(metric, values[place]);
        ++place;
      }
    }
  }
}

/// The value at a place; NaN where it is none.
double number_at(const MetricValues& values, size_t at) {
  if (const auto* const doubles = std::get_if<std::vector<double>>(&values)) return (*doubles)[at];
  if (const auto* const floats = std::get_if<std::vector<float>>(&values)) return (*floats)[at];
  return std::numeric_limits<double>::quiet_NaN();
}

bool is_number(const MetricVariable& variable) {
  return variable.of_heads &&
         (variable.type() == MetricType::f64 || variable.type() == MetricType::f32);
}

/// The numbers of a head of a run: of masks NAME(MASK), as in a .csv.
void add_numbers(const MetricVariable& variable, size_t place, TableBuilder& table) {
  if (!is_number(variable)) return;
  if (variable.shape.empty()) {
    table.add(variable.name, number_at(variable.values, place));
    return;
  }
  if (variable.axes != std::vector<std::string>{"sparse_mask"}) return;
  const auto labels = variable.labels.find("sparse_mask");
  const auto masks = static_cast<size_t>(variable.cell());
  for (size_t i = 0; i < masks; ++i) {
    const bool named = labels != variable.labels.end() && i < labels->second.size();
    table.add(fmt::format("{}({})", variable.name, named ? labels->second[i] : std::to_string(i)),
              number_at(variable.values, place * masks + i));
  }
}

void read_runs(const RunTable& runs, TableBuilder& table) {
  for (const MetricRun& run : runs.runs) table.add_run(run.name);
  for (const MetricGroup& group : runs.groups) {
    const auto& measured = std::get<std::vector<int32_t>>(group.find(kMeasured)->values);
    const MetricVariable* const classes = group.find("class");
    HeadName name = group_key(group);
    size_t place = 0;
    for (const MetricRun& run : runs.runs) {
      for (const int64_t item : group.batch) {
        for (const int64_t head : group.heads) {
          const size_t at = place++;
          if (measured[at] != 1) continue;
          name.batch = item;
          name.head = head;
          const auto* const words = classes == nullptr
                                        ? nullptr
                                        : std::get_if<std::vector<std::string>>(&classes->values);
          table.begin_line(run.name, name, words == nullptr ? "" : (*words)[at]);
          for (const MetricVariable& variable : group.variables) add_numbers(variable, at, table);
        }
      }
    }
  }
}

}  // namespace

bool is_number_table(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  const std::string extension = path.extension().string();
  if (extension == ".csv" || extension == ".json") return true;
  if (is_metric_journal(path)) return true;
  return is_export_file(path) && read_manifest(path).product == "stats";
}

NumberTable read_number_table(const fs::path& path, MemoryBudget& budget, MemoryReservation& held) {
  const std::string name = path.string();
  std::error_code failed;
  const auto size = static_cast<int64_t>(fs::file_size(path, failed));
  if (failed) throw file_error(name, "", "cannot be read: " + failed.message());
  const std::string extension = path.extension().string();
  held = budget.reserve(table_bytes(extension, size),
                        "the table " + one_line(path.filename().string()));
  TableBuilder table(name);
  if (extension == ".csv") {
    read_csv_table(path, table);
  } else if (is_metric_journal(path)) {
    read_runs(read_metric_journal(path), table);
  } else if (extension == ".json") {
    read_json_table(path, held.bytes(), table);
  } else if (is_metric_file(path)) {
    read_runs(read_metric_file(path, MetricPart::everything), table);
  } else {
    read_capture_stats(path, table);
  }
  return table.take();
}

}  // namespace attnscope
