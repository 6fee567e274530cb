#include "core/reduce/head_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/problem/key_segments.h"

namespace attnscope {
namespace {

/// True where the call has the tokens that the value is about: text, padding, video, other frames;
/// or sinks.
bool is_defined(RowValue which, const AttentionProblem& problem) {
  const TokenGrid& keys = problem.key_tokens();
  switch (which) {
    case RowValue::text_mass:
      return !keys.text_range().empty();
    case RowValue::padding_mass:
      return keys.has_padding();
    case RowValue::video_mass:
      return keys.has_grid() || (keys.has_map() && !keys.video_range().empty());
    case RowValue::same_position_mass:
      return keys.frames() > 1;
    case RowValue::sink_share:
      return !problem.sinks().is_none();
    default:
      return true;
  }
}

std::optional<double> defined(double value) {
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

Estimate mean_of(RowValue which, const HeadTotals& totals, const AttentionProblem& problem,
                 int64_t population) {
  Estimate mean;
  if (!is_defined(which, problem)) return mean;
  mean.value = defined(totals.mean(which));
  const int64_t count = totals.value(which).count();
  // Keys are counted on some rows even where all are added up; other numbers of the video's rows
  // alone are means of as large a part of these as all rows are of the population.
  const bool chosen = is_key_count(which);
  const bool sampled =
      chosen ? count + totals.masked_rows() < population : totals.rows() < population;
  if (mean.value && sampled) {
    const int64_t all = chosen ? population : count * population / totals.rows();
    mean.standard_error = defined(totals.standard_error(which, all));
  }
  return mean;
}

/// e^entropy, with the error that the entropy's becomes.
Estimate effective_keys(const Estimate& entropy) {
  Estimate keys;
  if (entropy.value) keys.value = std::exp(*entropy.value);
  if (entropy.standard_error) keys.standard_error = *keys.value * *entropy.standard_error;
  return keys;
}

Sink make_sink(int64_t key, double mass, const TokenGrid& keys) {
  Sink sink;
  sink.key = key;
  sink.mass = mass;
  sink.place = keys.coord(key);
  if (!sink.place && keys.text_range().contains(key)) {
    sink.text_index = key - keys.text_range().begin;
  }
  return sink;
}

std::vector<Sink> largest_columns(const std::vector<double>& mass, const TokenGrid& tokens) {
  std::vector<int64_t> keys(mass.size());
  std::iota(keys.begin(), keys.end(), 0);
  const size_t count = std::min(kMostSinks, keys.size());
  const auto heavier = [&](int64_t a, int64_t b) {
    const double mass_a = mass[static_cast<size_t>(a)];
    const double mass_b = mass[static_cast<size_t>(b)];
    return mass_a != mass_b ? mass_a > mass_b : a < b;
  };
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), keys.end(),
                    heavier);
  std::vector<Sink> sinks;
  for (size_t i = 0; i < count; ++i) {
    sinks.push_back(make_sink(keys[i], mass[static_cast<size_t>(keys[i])], tokens));
  }
  return sinks;
}

/// How many times more mass a part has than it would have if all keys had the same weight.
std::optional<double> lift(std::optional<double> mass, int64_t part, int64_t keys) {
  if (!mass || part == 0) return std::nullopt;
  return *mass * static_cast<double>(keys) / static_cast<double>(part);
}

/// The segments of a sequence with their groups; of one without a token map, its text and video.
std::vector<std::pair<std::string, IndexRange>> named_groups(const TokenGrid& tokens) {
  std::vector<std::pair<std::string, IndexRange>> groups;
  for (size_t i = 0; i < tokens.segments().size(); ++i) {
    groups.emplace_back(tokens.segments()[i].name, segment_groups(tokens, i));
  }
  if (tokens.has_map()) return groups;
  if (!tokens.text_range().empty()) groups.push_back({"text", {0, 1}});
  if (!tokens.video_range().empty()) groups.push_back({"video", {1, count_groups(tokens)}});
  return groups;
}

SegmentMasses segment_masses(const AttentionProblem& problem, const HeadTotals& totals) {
  SegmentMasses masses;
  const auto to = named_groups(problem.key_tokens());
  for (const auto& [name, groups] : to) masses.to.push_back(name);
  for (const auto& [name, queries] : named_groups(problem.query_tokens())) {
    masses.from.push_back(name);
    for (const auto& [key, keys] : to) {
      masses.mass.push_back(defined(totals.mass_between(queries, keys)));
    }
  }
  return masses;
}

void classify(HeadMetrics& head, const AttentionProblem& problem,
              const ClassThresholds& thresholds) {
  const TokenGrid& grid = problem.key_tokens();
  ClassScores& scores = head.class_scores;
  scores = {
      .sink = head.sink_mass,
      .text = head.text_mass.value,
      .temporal = head.same_position_mass.value,
      .temporal_lift = lift(head.same_position_mass.value, grid.frames() - 1, problem.num_keys()),
      .spatial = head.same_frame_mass.value,
      .spatial_lift =
          lift(head.same_frame_mass.value, grid.height() * grid.width(), problem.num_keys()),
      .local = head.local_mass.value};
  const auto reaches = [](const std::optional<double>& score, double threshold) {
    return score && *score >= threshold;
  };
  if (!problem.rows_add_up()) {
    // The thresholds are shares of a row's mass.
    head.head_class = HeadClass::undefined;
  } else if (reaches(scores.sink, thresholds.sink)) {
    head.head_class = HeadClass::sink;
  } else if (reaches(scores.text, thresholds.text)) {
    head.head_class = HeadClass::text;
  } else if (reaches(scores.temporal, thresholds.temporal) && scores.spatial_lift &&
             *scores.temporal_lift > *scores.spatial_lift) {
    head.head_class = HeadClass::temporal;
  } else if (reaches(scores.spatial, thresholds.spatial)) {
    head.head_class = HeadClass::spatial;
  } else if (reaches(scores.local, thresholds.local)) {
    head.head_class = HeadClass::local;
  } else {
    head.head_class = HeadClass::global;
  }
}

}  // namespace

HeadMetrics head_metrics(const HeadTotals& totals, const HeadTask& task,
                         const ReductionRequest& request, int64_t population,
                         const ClassThresholds& thresholds) {
  const AttentionProblem& problem = *task.problem;
  HeadMetrics head;
  head.rows = totals.rows();
  head.masked_rows = totals.masked_rows();
  if (request.places) head.band = request.band;
  for (const HeadField& field : head_fields()) {
    if (!field.mean_of) continue;
    head.*std::get<Estimate HeadMetrics::*>(field.member) =
        mean_of(*field.mean_of, totals, problem, population);
  }
  head.effective_keys = effective_keys(head.entropy);
  const bool any = head.rows > head.masked_rows;
  if (any) head.max_weight_peak = totals.max_weight_peak();
  if (!std::isnan(totals.max_logit())) head.max_logit = totals.max_logit();
  if (request.columns && any) {
    head.sinks = largest_columns(totals.column_mass(), problem.key_tokens());
  }
  if (!head.sinks.empty()) head.sink_mass = head.sinks.front().mass;
  if (problem.query_tokens().has_map() || problem.key_tokens().has_map()) {
    head.segment_mass = segment_masses(problem, totals);
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

}  // namespace attnscope
