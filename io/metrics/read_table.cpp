#include "io/metrics/read_table.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/error.h"
#include "io/export/format/export_manifest.h"
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
  std::vector<std::string> names;
  for (const MetricRun& run : runs.runs) table.add_run(names.emplace_back(run.name));
  if (names.empty()) names.emplace_back();
  for (const MetricGroup& group : runs.groups) {
    const MetricVariable* const measured = runs.runs.empty() ? nullptr : group.find(kMeasured);
    const auto is_measured = [&](size_t at) {
      return measured == nullptr || std::get<std::vector<int32_t>>(measured->values)[at] == 1;
    };
    const MetricVariable* const classes = group.find("class");
    HeadName name = group_key(group);
    size_t place = 0;
    for (const std::string& run : names) {
      for (const int64_t item : group.batch) {
        for (const int64_t head : group.heads) {
          const size_t at = place++;
          if (!is_measured(at)) continue;
          name.batch = item;
          name.head = head;
          const auto* const words = classes == nullptr
                                        ? nullptr
                                        : std::get_if<std::vector<std::string>>(&classes->values);
          table.begin_line(run, name, words == nullptr ? "" : (*words)[at]);
          for (const MetricVariable& variable : group.variables) add_numbers(variable, at, table);
        }
      }
    }
  }
}

}  // namespace

bool is_number_table(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "capture.json" || name.ends_with(".safetensors.index.json")) return false;
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
  } else {
    read_runs(read_stats_file(path, MetricPart::numbers), table);
  }
  return table.take();
}

}  // namespace attnscope
