#include "core/reduce/head_totals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace attnscope {
namespace {

/// Low part of a square: 30 bits.
constexpr int kLowBits = 30;
constexpr int64_t kLowMask = (int64_t{1} << kLowBits) - 1;

std::vector<double> scaled(const std::vector<int64_t>& values, double factor) {
  std::vector<double> result;
  result.reserve(values.size());
  for (int64_t value : values) result.push_back(static_cast<double>(value) * factor);
  return result;
}

}  // namespace

void ValueSum::add(double value, double scale) {
  const int64_t fixed = std::llrint(value * scale);
  ++count_;
  sum_ += fixed;
  const auto square = static_cast<__int128>(fixed) * fixed;
  squares_high_ += static_cast<int64_t>(square >> (2 * kLowBits));
  squares_low_ += static_cast<int64_t>(square >> kLowBits) & kLowMask;
}

void ValueSum::merge(const ValueSum& other) {
  count_ += other.count_;
  sum_ += other.sum_;
  squares_high_ += other.squares_high_;
  squares_low_ += other.squares_low_;
}

double ValueSum::mean(double scale) const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(sum_) / scale / static_cast<double>(count_);
}

double ValueSum::standard_error(double scale, int64_t population) const {
  if (count_ < 2) return count_ >= population ? 0 : std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<double>(count_);
  const double squares = (std::ldexp(static_cast<double>(squares_high_), 2 * kLowBits) +
                          std::ldexp(static_cast<double>(squares_low_), kLowBits)) /
                         (scale * scale);
  const double m = mean(scale);
  const double variance = std::max(0.0, (squares - n * m * m) / (n - 1));
  const double left = 1 - n / static_cast<double>(std::max(population, count_));
  return std::sqrt(variance / n * left);
}

HeadTotals::HeadTotals(const HeadTask& task, const ReductionRequest& request) {
  const AttentionProblem& problem = *task.problem;
  const TokenGrid& keys = problem.key_tokens();
  scale_ = fixed_scale(problem);
  key_segments_ = count_groups(keys);
  const int64_t query_segments = count_groups(problem.query_tokens());
  segment_rows_.assign(static_cast<size_t>(query_segments), 0);
  segment_masses_.assign(static_cast<size_t>(query_segments * key_segments_), 0);
  if (request.columns) columns_.assign(static_cast<size_t>(problem.num_keys()), 0);
  if (request.diagonals) {
    diagonals_.assign(static_cast<size_t>(problem.num_queries() + problem.num_keys() - 1), 0);
  }
  if (request.offsets) {
    offsets_.assign(static_cast<size_t>((2 * keys.frames() - 1) * (2 * keys.height() - 1) *
                                        (2 * keys.width() - 1)),
                    0);
  }
}

int64_t HeadTotals::bytes(const HeadTask& task, const ReductionRequest& request) {
  const AttentionProblem& problem = *task.problem;
  const TokenGrid& keys = problem.key_tokens();
  int64_t bytes = (count_groups(keys) + 2) * (count_groups(problem.query_tokens()) + 3) * 8;
  if (request.columns) bytes += problem.num_keys() * 8;
  if (request.diagonals) bytes += (problem.num_queries() + problem.num_keys()) * 8;
  if (request.offsets) {
    bytes += (2 * keys.frames() - 1) * (2 * keys.height() - 1) * (2 * keys.width() - 1) * 8;
  }
  return bytes;
}

void HeadTotals::add(const HeadTask& task, const PanelReduction& panel) {
  panel.add_to(columns_, diagonals_, offsets_);
  if (!panel.request().any_rows()) return;
  for (int64_t row = 0; row < panel.num_rows(); ++row) add_row(task, panel, row);
}

void HeadTotals::add_row(const HeadTask& task, const PanelReduction& panel, int64_t row) {
  const RowReduction& r = panel.row(row);
  ++rows_;
  const int64_t index = panel.row_index(row);
  // Of a row without keys, and of one whose sink leaves them nothing, all is the sink's.
  const double sink = task.problem->sinks().logit(task.batch, task.head, index);
  if (std::isfinite(sink)) {
    const double share = r.masked ? 1 : std::exp(sink - r.norm.lse());
    values_[static_cast<size_t>(RowValue::sink_share)].add(share, scale_);
  } else if (!task.problem->sinks().is_none() && !r.masked) {
    values_[static_cast<size_t>(RowValue::sink_share)].add(0, scale_);
  }
  if (r.masked) {
    ++masked_rows_;
    return;
  }
  max_weight_peak_ = std::max(max_weight_peak_, r.max_weight);
  if (is_softmax(task.problem->score()) && r.max_weight > 0) {
    max_logit_ = std::fmax(max_logit_, r.norm.lse() + std::log(r.max_weight));
  }
  const ReductionRequest& request = panel.request();
  const auto take = [&](RowValue which, double value) {
    values_[static_cast<size_t>(which)].add(value, scale_);
  };
  if (request.entropy) take(RowValue::entropy, r.entropy);
  take(RowValue::max_weight, r.max_weight);
  if (std::binary_search(request.share_rows.begin(), request.share_rows.end(), index)) {
    auto which = static_cast<uint8_t>(RowValue::keys_for_50);
    for (const int64_t keys : r.keys_for) {
      take(RowValue{which++}, static_cast<double>(keys) / kCountUnit);
    }
  }
  const AttentionProblem& problem = *task.problem;
  const TokenGrid& queries = problem.query_tokens();
  const auto place = queries.coord(index);
  const int64_t segment = group_at(queries, index);
  ++segment_rows_[static_cast<size_t>(segment)];
  const KeySegments& parts = panel.segments();
  const double* masses = panel.masses(row);
  double padding = 0, text = 0, video = 0;
  for (int64_t group = 0; group < key_segments_; ++group) {
    const auto [counts, pads] = parts.parts_of(group);
    double mass = masses[counts];
    if (pads >= 0) mass += masses[pads];
    segment_masses_[static_cast<size_t>(segment * key_segments_ + group)] +=
        std::llrint(mass * scale_);
    if (parts.is_text(group)) text += mass;
    if (group >= 1 && group <= parts.frames()) video += mass;
    if (parts.is_padding(counts)) padding += masses[counts];
    if (pads >= 0) padding += masses[pads];
  }
  if (queries.segment(index, task.batch) != Segment::video) return;
  take(RowValue::text_mass, text);
  take(RowValue::padding_mass, padding);
  take(RowValue::video_mass, video);
  if (!request.places || !place) return;
  const double own_frame = masses[1 + place->t];
  take(RowValue::same_frame_mass, own_frame);
  take(RowValue::same_position_mass, r.places.same_position);
  take(RowValue::spatial_score, own_frame + text);
  take(RowValue::temporal_score, r.places.band + text);
  take(RowValue::local_mass, r.places.local);
}

double HeadTotals::segment_mass(int64_t query_segment, int64_t key_segment) const {
  return mass_between({query_segment, query_segment + 1}, {key_segment, key_segment + 1});
}

double HeadTotals::mass_between(IndexRange query_segments, IndexRange key_segments) const {
  const auto listed = [](IndexRange range) {
    std::vector<int64_t> numbers(static_cast<size_t>(range.size()));
    std::iota(numbers.begin(), numbers.end(), range.begin);
    return numbers;
  };
  return mass_between(listed(query_segments), listed(key_segments));
}

double HeadTotals::mass_between(std::span<const int64_t> query_segments,
                                std::span<const int64_t> key_segments) const {
  int64_t rows = 0, mass = 0;
  for (const int64_t query : query_segments) {
    rows += segment_rows(query);
    for (const int64_t key : key_segments) {
      mass += segment_masses_[static_cast<size_t>(query * key_segments_ + key)];
    }
  }
  if (rows == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(mass) / scale_ / static_cast<double>(rows);
}

std::vector<double> HeadTotals::column_mass() const {
  const int64_t counted = rows_ - masked_rows_;
  return scaled(columns_, counted == 0 ? 0 : 1 / scale_ / static_cast<double>(counted));
}

std::vector<double> HeadTotals::diagonal_profile() const { return scaled(diagonals_, 1 / scale_); }

std::vector<double> HeadTotals::offset_sums() const { return scaled(offsets_, 1 / scale_); }

std::vector<double> HeadTotals::offset_kernel() const {
  double total = 0;
  for (int64_t value : offsets_) total += static_cast<double>(value);
  return scaled(offsets_, total == 0 ? 0 : 1 / total);
}

}  // namespace attnscope
