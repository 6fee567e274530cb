#include "core/reduce/head_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attnscope {
namespace {

constexpr size_t kSinks = 5;

struct MetricSource {
  std::string_view name;
  RowValue value;
};

constexpr MetricSource kMeans[] = {
    {"entropy", RowValue::entropy},
    {"max_weight", RowValue::max_weight},
    {"text_mass", RowValue::text_mass},
    {"padding_mass", RowValue::padding_mass},
    {"video_mass", RowValue::video_mass},
    {"same_frame_mass", RowValue::same_frame_mass},
    {"same_position_mass", RowValue::same_position_mass},
    {"spatial_score", RowValue::spatial_score},
    {"temporal_score", RowValue::temporal_score},
    {"local_mass", RowValue::local_mass},
    {"keys_for_50", RowValue::keys_for_50},
    {"keys_for_90", RowValue::keys_for_90},
    {"keys_for_95", RowValue::keys_for_95},
};

/// Whether the call has what the value speaks of.
bool is_defined(RowValue which, const AttentionProblem& problem) {
  const TokenGrid& keys = problem.key_tokens();
  switch (which) {
    case RowValue::text_mass:
      return !keys.text_range().empty();
    case RowValue::padding_mass:
      return !keys.text_valid().empty();
    case RowValue::video_mass:
      return !keys.video_range().empty();
    case RowValue::same_position_mass:
      return keys.frames() > 1;
    default:
      return true;
  }
}

std::optional<double> defined(double value) {
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

Metric mean_of(const MetricSource& source, const HeadTotals& totals,
               const AttentionProblem& problem, int64_t population) {
  Metric metric{source.name, {}, {}};
  if (!is_defined(source.value, problem)) return metric;
  metric.value = defined(totals.mean(source.value));
  const int64_t count = totals.value(source.value).count();
  if (metric.value && count + totals.masked_rows() < population) {
    metric.standard_error = defined(totals.standard_error(source.value, population));
  }
  return metric;
}

std::vector<Sink> largest_columns(const std::vector<double>& mass) {
  std::vector<int64_t> keys(mass.size());
  std::iota(keys.begin(), keys.end(), 0);
  const size_t count = std::min(kSinks, keys.size());
  const auto heavier = [&](int64_t a, int64_t b) {
    const double mass_a = mass[static_cast<size_t>(a)];
    const double mass_b = mass[static_cast<size_t>(b)];
    return mass_a != mass_b ? mass_a > mass_b : a < b;
  };
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end(),
                    heavier);
  std::vector<Sink> sinks;
  for (size_t i = 0; i < count; ++i) sinks.push_back({keys[i], mass[static_cast<size_t>(keys[i])]});
  return sinks;
}

/// How many times more mass a part has than it would have if all keys had the same weight.
std::optional<double> lift(std::optional<double> mass, int64_t part, int64_t keys) {
  if (!mass || part == 0) return std::nullopt;
  return *mass * static_cast<double>(keys) / static_cast<double>(part);
}

void classify(HeadMetrics& head, const AttentionProblem& problem,
              const ClassThresholds& thresholds) {
  const TokenGrid& grid = problem.key_tokens();
  const auto score = [&](std::string_view name) { return head.find(name); };
  const auto position_lift =
      lift(score("same_position_mass"), grid.frames() - 1, problem.num_keys());
  const auto frame_lift =
      lift(score("same_frame_mass"), grid.height() * grid.width(), problem.num_keys());
  head.class_scores = {{"sink", score("sink_mass"), {}},
                       {"text", score("text_mass"), {}},
                       {"temporal", score("same_position_mass"), {}},
                       {"temporal_lift", position_lift, {}},
                       {"spatial", score("same_frame_mass"), {}},
                       {"spatial_lift", frame_lift, {}},
                       {"local", score("local_mass"), {}}};
  const auto reaches = [&](std::string_view name, double threshold) {
    const auto value = score(name);
    return value && *value >= threshold;
  };
  if (!is_normalised(problem.score())) {
    // The thresholds are shares of a row's mass.
    head.head_class = "undefined";
  } else if (reaches("sink_mass", thresholds.sink)) {
    head.head_class = "sink";
  } else if (reaches("text_mass", thresholds.text)) {
    head.head_class = "text";
  } else if (reaches("same_position_mass", thresholds.temporal) && frame_lift &&
             *position_lift > *frame_lift) {
    head.head_class = "temporal";
  } else if (reaches("same_frame_mass", thresholds.spatial)) {
    head.head_class = "spatial";
  } else if (reaches("local_mass", thresholds.local)) {
    head.head_class = "local";
  } else {
    head.head_class = "global";
  }
}

}  // namespace

std::optional<double> HeadMetrics::find(std::string_view name) const {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> metric_names() {
  std::vector<std::string_view> names;
  for (const MetricSource& source : kMeans) {
    names.push_back(source.name);
    if (source.value == RowValue::entropy) names.push_back("effective_keys");
    if (source.value == RowValue::max_weight) names.push_back("max_weight_peak");
    if (source.value == RowValue::local_mass) names.push_back("sink_mass");
  }
  return names;
}

HeadMetrics head_metrics(const HeadTotals& totals, const HeadTask& task,
                         const ReductionRequest& request, int64_t population,
                         const ClassThresholds& thresholds) {
  const AttentionProblem& problem = *task.problem;
  HeadMetrics head;
  head.rows = totals.rows();
  head.masked_rows = totals.masked_rows();
  const bool any = head.rows > head.masked_rows;
  if (request.columns && any) head.sinks = largest_columns(totals.column_mass());
  for (const MetricSource& source : kMeans) {
    const Metric mean = mean_of(source, totals, problem, population);
    head.metrics.push_back(mean);
    if (source.value == RowValue::entropy) {
      Metric keys{"effective_keys", {}, {}};
      if (mean.value) keys.value = std::exp(*mean.value);
      if (mean.standard_error) keys.standard_error = *keys.value * *mean.standard_error;
      head.metrics.push_back(keys);
    } else if (source.value == RowValue::max_weight) {
      head.metrics.push_back(
          {"max_weight_peak", any ? std::optional(totals.max_weight_peak()) : std::nullopt, {}});
    } else if (source.value == RowValue::local_mass) {
      head.metrics.push_back(
          {"sink_mass",
           head.sinks.empty() ? std::nullopt : std::optional(head.sinks.front().mass),
           {}});
    }
  }
  classify(head, problem, thresholds);
  return head;
}

ReductionRequest metrics_request(const AttentionProblem& problem,
                                 std::span<const int64_t> share_rows, std::optional<int64_t> band) {
  const TokenGrid& keys = problem.key_tokens();
  ReductionRequest request;
  request.rows = true;
  request.columns = true;
  request.entropy = is_normalised(problem.score());
  request.places = keys.has_grid() && keys == problem.query_tokens();
  request.band = band ? *band : default_band(keys);
  request.share_rows = share_rows;
  return request;
}

std::vector<int64_t> spread_rows(int64_t rows, int64_t count) {
  count = std::min(rows, count);
  std::vector<int64_t> chosen;
  chosen.reserve(static_cast<size_t>(count));
  // ⌊(2i + 1)·rows / (2·count)⌋, in integers.
  for (int64_t i = 0; i < count; ++i) {
    chosen.push_back(static_cast<int64_t>(static_cast<__int128>(2 * i + 1) * rows / (2 * count)));
  }
  return chosen;
}

}  // namespace attnscope
