#include "core/patterns/mask_summary.h"

#include <algorithm>
#include <cmath>

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

void summarise_sampled(const MaskRecall& probe, size_t mask, bool values, bool exact,
                       MaskQuality& score) {
  std::vector<double> oracles, effective_oracles, recalls, errors;
  double error = 0, norm = 0;
  const auto rows = probe.scores(mask);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (probe.is_masked(static_cast<int64_t>(r))) continue;
    oracles.push_back(rows[r].oracle);
    effective_oracles.push_back(rows[r].effective_oracle);
    recalls.push_back(rows[r].recall);
    if (!values) continue;
    const double row_norm = probe.output_norms()[r];
    error += rows[r].error;
    norm += row_norm;
    if (row_norm > 0) errors.push_back(std::sqrt(rows[r].error / row_norm));
  }
  score.sampled_rows = static_cast<int64_t>(oracles.size());
  score.oracle_recall = mean(oracles);
  score.effective_oracle_recall = mean(effective_oracles);
  score.recall_sampled = mean(recalls);
  if (score.oracle_recall && !exact) {
    score.oracle_stderr = standard_error(oracles, *score.oracle_recall);
  }
  if (norm > 0) score.output_error = std::sqrt(error / norm);
  score.output_error_mean = mean(errors);
  score.output_error_p95 = quantile(std::move(errors), 0.95);
}

}  // namespace

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
  summarise_sampled(sampled, mask, values, &all == &sampled, score);
  return score;
}

}  // namespace attnscope
