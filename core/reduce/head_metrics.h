#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/reduce/head_fields.h"
#include "core/reduce/head_totals.h"

namespace attnscope {

/// From which score on a head is called what it is called.
struct ClassThresholds {
  double sink = 0.10;
  double text = 0.25;
  double temporal = 0.15;
  double spatial = 0.40;
  double local = 0.40;
};

/// The numbers of a head. `population` is how many rows the totals stand for. The request must be
/// that of the totals, with columns. Sinks have no token strings, which a map does not know.
HeadMetrics head_metrics(const HeadTotals& totals, const HeadTask& task,
                         const ReductionRequest& request, int64_t population,
                         const ClassThresholds& thresholds = {});

/// The request behind head_metrics(): everything that its numbers need and that the call defines.
/// `share_rows` (borrowed) are the rows on which keys are counted.
ReductionRequest metrics_request(const AttentionProblem& problem,
                                 std::span<const int64_t> share_rows,
                                 std::optional<int64_t> band = {});

}  // namespace attnscope
