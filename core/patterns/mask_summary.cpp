#include "core/patterns/mask_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/mask/picked_blocks.h"
#include "core/problem/token_grid.h"

namespace attnscope {
namespace {

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Of the mean; nothing for fewer than two values.
std::optional<double> standard_error(const std::vector<double>& values, double average) {
  if (values.size() < 2) return std::nullopt;
  double squares = 0;
  for (double value : values) squares += (value - average) * (value - average);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1) / n);
}

/// Sums over rows of outputs.
struct OutputSums {
  double error = 0, norm = 0, product = 0, length = 0;

  void add(const RowRecall& row, double row_norm) {
    error += row.error;
    norm += row_norm;
    product += row.product;
    length += row.length;
  }
  std::optional<double> ratio() const {
    return norm > 0 ? std::optional(std::sqrt(error / norm)) : std::nullopt;
  }
  std::optional<double> cosine() const {
    const double lengths = std::sqrt(norm) * std::sqrt(length);
    return lengths > 0 ? std::optional(product / lengths) : std::nullopt;
  }
};

struct SegmentSums {
  std::string name;
  IndexRange tokens;
  OutputSums sums;
};

/// The segments of the queries; text and video where no token map tells.
std::vector<SegmentSums> segments_of(const TokenGrid& tokens) {
  std::vector<SegmentSums> list;
  if (!tokens.has_map()) {
    if (!tokens.text_range().empty()) list.push_back({"text", tokens.text_range(), {}});
    if (!tokens.video_range().empty()) list.push_back({"video", tokens.video_range(), {}});
    return list;
  }
  for (const TokenSegment& segment : tokens.segments()) {
    list.push_back({segment.name, segment.tokens, {}});
  }
  return list;
}

void summarise_outputs(const MaskRecall& probe, size_t mask, bool exact, MaskQuality& score) {
  OutputSums all;
  std::vector<SegmentSums> segments = segments_of(probe.task().problem->query_tokens());
  std::vector<double> errors;
  const auto rows = probe.scores(mask);
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto place = static_cast<int64_t>(r);
    if (probe.is_masked(place)) continue;
    const double row_norm = probe.output_norms()[r];
    all.add(rows[r], row_norm);
    if (row_norm > 0) errors.push_back(std::sqrt(rows[r].error / row_norm));
    const int64_t query = probe.task().row_at(place);
    for (SegmentSums& segment : segments) {
      const bool inside = segment.tokens.begin <= query && query < segment.tokens.end;
      if (inside) segment.sums.add(rows[r], row_norm);
    }
  }
  score.output_error = all.ratio();
  score.output_cosine = all.cosine();
  score.output_error_mean = mean(errors);
  if (score.output_error_mean && !exact) {
    score.output_error_stderr = standard_error(errors, *score.output_error_mean);
  }
  score.output_error_p95 = quantile(std::move(errors), 0.95);
  for (const SegmentSums& segment : segments) {
    const std::optional<double> ratio = segment.sums.ratio();
    if (ratio) score.segment_errors.emplace_back(segment.name, *ratio);
  }
}

/// Of all rows of the head?
bool is_whole(const MaskRecall& probe) {
  return probe.task().num_rows() == probe.task().problem->num_queries();
}

void summarise_sampled(const MaskRecall& probe, size_t mask, bool values, MaskQuality& score) {
  const bool exact = is_whole(probe);
  std::vector<double> oracles, effective_oracles, recalls, forced, divergences;
  const auto rows = probe.scores(mask);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (probe.is_masked(static_cast<int64_t>(r))) continue;
    oracles.push_back(rows[r].oracle);
    effective_oracles.push_back(rows[r].effective_oracle);
    recalls.push_back(rows[r].recall);
    forced.push_back(rows[r].forced);
    divergences.push_back(rows[r].divergence);
  }
  score.sampled_rows = static_cast<int64_t>(oracles.size());
  score.oracle_recall = mean(oracles);
  score.effective_oracle_recall = mean(effective_oracles);
  score.recall_sampled = mean(recalls);
  if (score.oracle_recall && !exact) {
    score.oracle_stderr = standard_error(oracles, *score.oracle_recall);
    score.recall_stderr = standard_error(recalls, *score.recall_sampled);
  }
  if (values) summarise_outputs(probe, mask, exact, score);
  const DroppedTerms* const blocks = probe.mask(mask).dropped();
  if (blocks == nullptr) return;
  score.forced_mass = mean(forced);
  if (blocks->has_terms()) score.divergence = mean(divergences);
  score.visited = blocks->picks->visited();
  score.ties = blocks->picks->ties;
  score.best_block_recall = probe.best_block_recall(mask);
}

}  // namespace

std::span<const MaskField> mask_fields() {
  using Q = MaskQuality;
  static constexpr std::array<MaskField, 14> kFields{{
      {"density", "entries kept, of all", &Q::density},
      {"effective_density", "those that the call's own mask keeps, too, of all",
       &Q::effective_density},
      {"recall", "mean over rows of the mass that is kept", &Q::recall},
      {"recall_p05", "its 5 % quantile over rows", &Q::recall_p05},
      {"recall_sampled", "the same mean over the rows of the oracle", &Q::recall_sampled},
      {"oracle_recall", "the best at as many entries a row", &Q::oracle_recall},
      {"oracle_stderr", "standard error of oracle_recall", &Q::oracle_stderr},
      {"effective_oracle_recall",
       "the best at as many entries a row as the mask and the call's own mask keep together",
       &Q::effective_oracle_recall},
      {"output_error", "|O_M - O| / |O| over the rows together", &Q::output_error},
      {"output_error_mean", "mean over rows of their own ratio", &Q::output_error_mean},
      {"output_error_p95", "its 95 % quantile", &Q::output_error_p95},
      {"masked_rows", "rows of which the call's own mask leaves nothing", &Q::masked_rows},
      {"empty_rows", "other rows of which the mask leaves nothing", &Q::empty_rows},
      {"sampled_rows", "rows behind oracle and output errors", &Q::sampled_rows},
  }};
  return kFields;
}

std::span<const MaskField> lab_fields() {
  using Q = MaskQuality;
  static constexpr std::array<MaskField, 18> kFields{{
      {"density", "entries that are computed exactly, of all", &Q::density},
      {"tiles", "blocks that a kernel visits, of all", &Q::visited},
      {"recall", "mean over rows of their mass", &Q::recall},
      {"recall_stderr", "standard error of recall", &Q::recall_stderr},
      {"recall_p05", "5 % quantile over rows of the mass", &Q::recall_p05},
      {"entry_oracle_recall", "the best recall at as many entries a row", &Q::oracle_recall},
      {"block_oracle_recall", "the best recall at as many blocks a row of blocks",
       &Q::best_block_recall},
      {"output_error", "|O' - O| / |O| over the rows together", &Q::output_error},
      {"output_error_mean", "mean over rows of their own ratio", &Q::output_error_mean},
      {"output_error_stderr", "standard error of output_error_mean", &Q::output_error_stderr},
      {"output_error_p95", "95 % quantile of the rows' own ratios", &Q::output_error_p95},
      {"output_cosine", "cosine between O' and O", &Q::output_cosine},
      {"forced_mass",
       "mean over rows of the mass of blocks that are kept whatever their scores are",
       &Q::forced_mass},
      {"js", "Jensen-Shannon divergence of the weights, bits", &Q::divergence},
      {"ties", "pairs of blocks that a kernel's rounding may decide", &Q::ties},
      {"masked_rows", "rows of which the call's own mask leaves nothing", &Q::masked_rows},
      {"empty_rows", "other rows of which nothing is computed exactly", &Q::empty_rows},
      {"sampled_rows", "rows behind these numbers", &Q::sampled_rows},
  }};
  return kFields;
}

std::optional<double> number_of(const MaskQuality& quality, const MaskField& field) {
  return std::visit(
      [&](auto member) -> std::optional<double> {
        const auto& value = quality.*member;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, int64_t>) {
          return static_cast<double>(value);
        } else if constexpr (std::is_same_v<Value, std::optional<int64_t>>) {
          return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
        } else {
          return value;
        }
      },
      field.member);
}

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<int64_t>(std::floor(place));
  const auto at = values.begin() + low;
  std::nth_element(values.begin(), at, values.end());
  const double below = *at;
  if (at + 1 == values.end()) return below;
  const double above = *std::min_element(at + 1, values.end());
  return below + (above - below) * (place - static_cast<double>(low));
}

MaskQuality summarise_mask(const MaskRecall& all, const MaskRecall& sampled, size_t mask,
                           int64_t num_keys, bool values) {
  MaskQuality score;
  std::vector<double> recalls;
  int64_t kept = 0, effective = 0;
  const auto rows = all.scores(mask);
  for (size_t r = 0; r < rows.size(); ++r) {
    kept += rows[r].kept;
    effective += rows[r].effective;
    if (all.is_masked(static_cast<int64_t>(r))) {
      ++score.masked_rows;
      continue;
    }
    if (rows[r].effective == 0) ++score.empty_rows;
    recalls.push_back(rows[r].recall);
  }
  const double entries = static_cast<double>(rows.size()) * static_cast<double>(num_keys);
  score.density = static_cast<double>(kept) / entries;
  score.effective_density = static_cast<double>(effective) / entries;
  score.recall = mean(recalls);
  score.recall_p05 = quantile(std::move(recalls), 0.05);
  summarise_sampled(sampled, mask, values, score);
  const DroppedTerms* const blocks = all.mask(mask).dropped();
  if (blocks != nullptr && !is_whole(all)) {
    score.density = blocks->picks->density();
    if (all.task().problem->mask().is_none()) score.effective_density = score.density;
  }
  return score;
}

}  // namespace attnscope
