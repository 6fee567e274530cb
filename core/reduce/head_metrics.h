#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/reduce/head_totals.h"

namespace attnscope {

/// A number of a head; no value where it is not defined (no grid, no text, no rows).
struct Metric {
  std::string_view name;
  std::optional<double> value;
  /// Of the value, where it comes from a sample of the rows.
  std::optional<double> standard_error;
};

/// A key that draws mass from all rows.
struct Sink {
  int64_t key = 0;
  double mass = 0;  ///< mean over rows of P[:, key]
};

/// From which score on a head is called what it is called.
struct ClassThresholds {
  double sink = 0.10;
  double text = 0.25;
  double temporal = 0.15;
  double spatial = 0.40;
  double local = 0.40;
};

/// What is said of a head. Definitions: docs/metrics.md.
struct HeadMetrics {
  /// In a fixed order, the same for all heads.
  std::vector<Metric> metrics;
  /// The five keys of largest column mass, descending; equal ones by the lower key.
  std::vector<Sink> sinks;
  /// "sink", "text", "temporal", "spatial", "local" or "global": the first that holds; "undefined"
  /// for scores that are not normalised.
  std::string_view head_class;
  /// The scores that decided it.
  std::vector<Metric> class_scores;
  int64_t rows = 0, masked_rows = 0;

  std::optional<double> find(std::string_view name) const;
};

/// Names of HeadMetrics::metrics, in order.
std::vector<std::string_view> metric_names();

/// `population` is how many rows the totals stand for. The request must be that of the totals, with
/// columns.
HeadMetrics head_metrics(const HeadTotals& totals, const HeadTask& task,
                         const ReductionRequest& request, int64_t population,
                         const ClassThresholds& thresholds = {});

/// The request behind head_metrics(): everything that its numbers need and that the call defines.
/// `share_rows` (borrowed) are the rows on which keys are counted.
ReductionRequest metrics_request(const AttentionProblem& problem,
                                 std::span<const int64_t> share_rows,
                                 std::optional<int64_t> band = {});

/// `count` rows of `rows`, evenly spread: ⌊(i + ½)·rows/count⌋; all where count ≥ rows.
std::vector<int64_t> spread_rows(int64_t rows, int64_t count);

}  // namespace attnscope
