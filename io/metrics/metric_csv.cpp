#include "io/metrics/metric_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/results/csv_field.h"

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

/// What names a head, as commas part it.
std::string name_cells(const MetricRun& run, const MetricGroup& group, int64_t batch,
                       int64_t head) {
  const HeadName& name = group.call.name;
  const Unrecorded& unrecorded = name.place.unrecorded;
  const bool no_layer = unrecorded.layer || name.layer == kNoLayer;
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{}", csv_text(run.name), csv_text(run.prompt),
      run.seed ? std::to_string(*run.seed) : "", unrecorded.step ? "" : std::to_string(name.step),
      no_layer ? "" : std::to_string(name.layer), unrecorded.branch ? "" : csv_text(name.branch),
      name.kind, batch, head, csv_text(name.place.block), csv_text(name.place.slot),
      name.place.has_chunk() ? std::to_string(name.place.chunk) : "");
}

/// The facts of a call's forward that any call has.
std::vector<ForwardFact> forward_columns(const RunTable& table) {
  std::vector<ForwardFact> facts;
  for (const ForwardFact& fact : kForwardFacts) {
    if (std::any_of(table.groups.begin(), table.groups.end(), [&](const MetricGroup& group) {
          return group.call.name.place.forward.*fact.number != fact.none;
        })) {
      facts.push_back(fact);
    }
  }
  return facts;
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
  const std::vector<ForwardFact> forward = forward_columns(table);
  std::vector<MetricColumn> columns;
  for (const MetricGroup& group : table.groups) {
    for (const MetricVariable& variable : group.variables) {
      if (is_column(variable)) add_columns(variable, columns);
    }
  }
  std::string text = "run,prompt,seed,step,layer,branch,kind,batch,head,block,slot,chunk";
  for (const ForwardFact& fact : forward) text += "," + std::string(fact.name);
  for (const MetricColumn& column : columns) text += "," + csv_text(column.title);
  text += "\r\n";
  const PosixFile file(path, PosixFile::Mode::create);
  int64_t size = 0;
  const auto flush = [&] {
    file.write_at(std::as_bytes(std::span(text)), size);
    size += std::ssize(text);
    text.clear();
  };
  for (size_t r = 0; r < table.runs.size(); ++r) {
    for (const MeasuredHead& head : heads_of_run(table, r)) {
      text += name_cells(table.runs[r], *head.group, head.batch, head.head);
      for (const ForwardFact& fact : forward) {
        const int64_t number = head.group->call.name.place.forward.*fact.number;
        text += "," + (number == fact.none ? "" : std::to_string(number));
      }
      for (const MetricColumn& column : columns) {
        text += "," + column_cell(*head.group, column, head.place);
      }
      text += "\r\n";
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
