#include "cli/stats/stats_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/products/text_token.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (double value : values) list.push_back(number(value));
  return list;
}

Json sink_json(const Sink& sink, const CallEntry& call, const HeadTask& task) {
  const TokenGrid& keys = task.problem->key_tokens();
  Json json{{"key", sink.key}};
  if (const auto place = keys.coord(sink.key)) {
    json["t"] = place->t;
    json["y"] = place->y;
    json["x"] = place->x;
  } else if (keys.text_range().contains(sink.key)) {
    const int64_t n = sink.key - keys.text_range().begin;
    json["text_index"] = n;
    const auto words = call.tokens_of(task.batch);
    if (static_cast<size_t>(n) < words.size()) json["token"] = words[static_cast<size_t>(n)];
  }
  json["mass"] = sink.mass;
  return json;
}

/// Text as pseudo-frame 0, then the latent frames.
Json frame_frame(const HeadTotals& totals) {
  Json matrix = Json::array();
  for (int64_t q = 0; q < totals.query_segments(); ++q) {
    Json line = Json::array();
    for (int64_t k = 0; k < totals.key_segments(); ++k) {
      line.push_back(number(totals.segment_mass(q, k)));
    }
    matrix.push_back(line);
  }
  return matrix;
}

Json offset_kernel(const HeadTotals& totals, const TokenGrid& grid) {
  const std::vector<double> values = totals.offset_kernel();
  const auto rows = static_cast<size_t>(2 * grid.height() - 1);
  const auto columns = static_cast<size_t>(2 * grid.width() - 1);
  Json kernel = Json::array();
  for (size_t t = 0; t < static_cast<size_t>(2 * grid.frames() - 1); ++t) {
    Json slice = Json::array();
    for (size_t y = 0; y < rows; ++y) {
      const auto line = values.begin() + static_cast<std::ptrdiff_t>((t * rows + y) * columns);
      slice.push_back(std::vector<double>(line, line + static_cast<std::ptrdiff_t>(columns)));
    }
    kernel.push_back(slice);
  }
  return kernel;
}

void add_extra(Json& json, const std::string& name, const HeadTotals& totals, const HeadTask& task,
               const StatsRows& rows) {
  if (name == "frame_frame") json[name] = frame_frame(totals);
  if (name == "column_mass") json[name] = totals.column_mass();
  if (name == "diagonal_profile") json[name] = totals.diagonal_profile();
  if (name == "offset_kernel") json[name] = offset_kernel(totals, task.problem->key_tokens());
  if (name == "entropy_rows") json[name] = numbers(rows.entropy);
  if (name == "max_weight_rows") json[name] = numbers(rows.max_weight);
  if (name == "max_key_rows") json[name] = numbers(rows.max_key);
  if (name == "lse_rows") json[name] = numbers(rows.lse);
}

/// What the table shows of a record.
struct Column {
  const char* title;
  const char* key;
  int decimals;
};
constexpr Column kColumns[] = {
    {"entropy", "entropy", 3},       {"eff.keys", "effective_keys", 1},
    {"max", "max_weight", 4},        {"text", "text_mass", 3},
    {"frame", "same_frame_mass", 3}, {"position", "same_position_mass", 3},
    {"spatial", "spatial_score", 3}, {"temporal", "temporal_score", 3},
    {"local", "local_mass", 3},      {"sink", "sink_mass", 4},
    {"keys 50%", "keys_for_50", 0},  {"keys 90%", "keys_for_90", 0},
};

}  // namespace

Json stats_record(const CallEntry& call, const HeadTask& task, const HeadMetrics& metrics,
                  const HeadTotals& totals, const ReductionRequest& request,
                  const StatsExtras& extras, const StatsRows& rows) {
  Json json{{"step", call.id.step},
            {"layer", call.id.layer},
            {"branch", branch_of(call.id, task.batch)},
            {"kind", kind_name(call.id.kind)},
            {"batch", task.batch},
            {"head", task.head},
            {"class", metrics.head_class}};
  for (const Metric& metric : metrics.metrics) {
    json[std::string(metric.name)] = number(metric.value);
    if (metric.standard_error) {
      json[std::string(metric.name) + "_stderr"] = number(metric.standard_error);
    }
  }
  json["band"] = request.places ? Json(request.band) : Json();
  json["rows"] = metrics.rows;
  json["masked_rows"] = metrics.masked_rows;
  Json scores = Json::object();
  for (const Metric& score : metrics.class_scores) {
    scores[std::string(score.name)] = number(score.value);
  }
  json["class_scores"] = scores;
  json["sinks"] = Json::array();
  for (const Sink& sink : metrics.sinks) json["sinks"].push_back(sink_json(sink, call, task));
  for (const std::string& name : extras) add_extra(json, name, totals, task, rows);
  return json;
}

void print_stats_table(const std::vector<Json>& records) {
  size_t branch_width = 6;
  for (const Json& record : records) {
    branch_width = std::max(branch_width, one_line(record["branch"].get<std::string>()).size());
  }
  fmt::print("{:>5} {:>5} {:<{}} {:<5} {:>2} {:>4} {:<8}", "step", "layer", "branch", branch_width,
             "kind", "b", "head", "class");
  for (const Column& column : kColumns) fmt::print(" {:>8}", column.title);
  fmt::print("\n");
  for (const Json& record : records) {
    fmt::print("{:>5} {:>5} {:<{}} {:<5} {:>2} {:>4} {:<8}", record["step"].get<int64_t>(),
               record["layer"].get<int64_t>(), one_line(record["branch"].get<std::string>()),
               branch_width, record["kind"].get<std::string>(), record["batch"].get<int64_t>(),
               record["head"].get<int64_t>(), record["class"].get<std::string>());
    for (const Column& column : kColumns) {
      const Json& value = record[column.key];
      if (value.is_number()) {
        fmt::print(" {:>8.{}f}", value.get<double>(), column.decimals);
      } else {
        fmt::print(" {:>8}", "-");
      }
    }
    fmt::print("\n");
  }
}

}  // namespace attnscope
