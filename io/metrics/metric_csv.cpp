#include "io/metrics/metric_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"

namespace attnscope {
namespace {

/// A column of numbers or of a class.
struct MetricColumn {
  std::string title, variable;
  int64_t place = 0;  ///< within the cell of a head
  friend bool operator==(const MetricColumn&, const MetricColumn&) = default;
};

bool is_of_masks(const MetricVariable& variable) {
  return variable.axes == std::vector<std::string>{"sparse_mask"};
}

bool is_column(const MetricVariable& variable) {
  return variable.of_heads && variable.name != kMeasured &&
         (variable.shape.empty() || is_of_masks(variable) || variable.name == "sink_keys");
}

void add_columns(const MetricVariable& variable, std::vector<MetricColumn>& columns) {
  const auto add = [&](MetricColumn column) {
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
      columns.push_back(std::move(column));
    }
  };
  if (variable.name == "sink_keys") return add({"sink_key", variable.name, 0});
  if (!is_of_masks(variable)) return add({variable.name, variable.name, 0});
  const auto labels = variable.labels.find("sparse_mask");
  for (int64_t i = 0; i < variable.cell(); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool named = labels != variable.labels.end() && at < labels->second.size();
    add({fmt::format("{}({})", variable.name, named ? labels->second[at] : std::to_string(i)),
         variable.name, i});
  }
}

std::string number_cell(double value) {
  return std::isfinite(value) ? OrderedJson(value).dump() : "";
}

std::string column_cell(const MetricGroup& group, const MetricColumn& column, size_t head) {
  const MetricVariable* const variable = group.find(column.variable);
  if (variable == nullptr || column.place >= variable->cell()) return "";
  const size_t at =
      head * static_cast<size_t>(variable->cell()) + static_cast<size_t>(column.place);
  switch (variable->type()) {
    case MetricType::f64:
      return number_cell(std::get<std::vector<double>>(variable->values)[at]);
    case MetricType::f32:
      return number_cell(std::get<std::vector<float>>(variable->values)[at]);
    case MetricType::i32: {
      const int32_t value = std::get<std::vector<int32_t>>(variable->values)[at];
      return value < 0 ? "" : std::to_string(value);
    }
    case MetricType::text:
      break;
  }
  return csv_text(std::get<std::vector<std::string>>(variable->values)[at]);
}

/// A head of a run, and where its values stand in those of the group.
struct MeasuredHead {
  const MetricGroup* group = nullptr;
  int64_t batch = 0, head = 0;
  size_t place = 0;

  auto order() const {
    const HeadName& name = group->call.name;
    return std::tie(name.step, name.layer, batch, name.kind, name.place, head, name.branch);
  }
};

/// Those that were measured, in the order in which stats lists heads.
std::vector<MeasuredHead> heads_of_run(const RunTable& table, size_t run) {
  std::vector<MeasuredHead> heads;
  for (const MetricGroup& group : table.groups) {
    const auto& measured = std::get<std::vector<int32_t>>(group.find(kMeasured)->values);
    size_t place = run * group.batch.size() * group.heads.size();
    for (const int64_t b : group.batch) {
      for (const int64_t h : group.heads) {
        if (measured[place] == 1) heads.push_back({&group, b, h, place});
        ++place;
      }
    }
  }
  std::sort(heads.begin(), heads.end(),
            [](const MeasuredHead& a, const MeasuredHead& b) { return a.order() < b.order(); });
  return heads;
}

}  // namespace

void write_metric_csv(const RunTable& table, const std::filesystem::path& path) {
  const PosixFile file(path, PosixFile::Mode::create);
  int64_t size = 0;
  put_metric_csv(table, [&](std::string_view text) {
    file.write_at(std::as_bytes(std::span(text)), size);
    size += std::ssize(text);
  });
}

void put_metric_csv(const RunTable& table, const std::function<void(std::string_view)>& put) {
  HeadColumns heads;
  for (const char* const title : {"block", "slot", "chunk"}) heads.add(std::string_view(title));
  std::vector<MetricColumn> columns;
  for (const MetricGroup& group : table.groups) {
    heads.add(group.call.name);
    for (const MetricVariable& variable : group.variables) {
      if (is_column(variable)) add_columns(variable, columns);
    }
  }
  std::vector<std::string> fields{"run", "prompt", "seed"};
  const auto append = [&](std::vector<std::string> more) {
    fields.insert(fields.end(), more.begin(), more.end());
  };
  append(heads.titles());
  for (const MetricColumn& column : columns) fields.push_back(csv_text(column.title));
  std::string text = csv_line(fields);
  const auto flush = [&] {
    put(text);
    text.clear();
  };
  for (size_t r = 0; r < table.runs.size(); ++r) {
    const MetricRun& run = table.runs[r];
    for (const MeasuredHead& head : heads_of_run(table, r)) {
      HeadName name = head.group->call.name;
      name.batch = head.batch;
      name.head = head.head;
      fields = {csv_text(run.name), csv_text(run.prompt),
                run.seed ? std::to_string(*run.seed) : ""};
      append(heads.fields(name));
      for (const MetricColumn& column : columns) {
        fields.push_back(column_cell(*head.group, column, head.place));
      }
      text += csv_line(fields);
    }
    flush();
  }
  flush();
}

std::vector<std::string> not_in_csv(const RunTable& table) {
  std::set<std::string> names;
  for (const MetricGroup& group : table.groups) {
    for (const MetricVariable& variable : group.variables) {
      if (variable.of_heads && !is_column(variable) && variable.name != kMeasured) {
        names.insert(variable.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace attnscope
