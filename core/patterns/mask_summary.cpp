#include "core/patterns/mask_summary.h"

#include <algorithm>
#include <array>
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

std::optional<double> number_of(const MaskQuality& quality, const MaskField& field) {
  return std::visit(
      [&](auto member) -> std::optional<double> {
        const auto& value = quality.*member;
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) {
          return static_cast<double>(value);
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
  summarise_sampled(sampled, mask, values, &all == &sampled, score);
  return score;
}

}  // namespace attnscope
