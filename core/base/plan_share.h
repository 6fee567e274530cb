#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/index_range.h"

namespace attnscope {

/// Which share of a plan a run takes: the index-th of count, counted from 0. A value.
struct PlanShare {
  int64_t index = 0;
  int64_t count = 1;

  /// "2/7".
  std::string text() const;
  /// Of "2/7". Throws Error(usage) naming `option` where it is no such text, count is not 1 to
  /// kMostShares, or index not below it.
  static PlanShare parse(std::string_view text, std::string_view option);

  friend bool operator==(const PlanShare&, const PlanShare&) = default;
};
constexpr int64_t kMostShares = 65536;

/// The description of one share of a plan that its output records, so that all the outputs can be
/// merged into the whole. A value.
struct PlanPart {
  PlanShare share;
  std::string plan_hash;  ///< of the whole plan; alike in all of its parts
  IndexRange units;       ///< of the plan's units, those that are here
  int64_t all_units = 0;

  friend bool operator==(const PlanPart&, const PlanPart&) = default;
};

/// Cuts units that follow each other, `work` of each (≥ 0), into `count` runs (1 to kMostShares) of
/// about equal work: a unit goes to the run in which the middle of it lies. Whole numbers alone:
/// the same everywhere. No run has more work than the mean and one unit; some are empty where there
/// are fewer units than runs.
std::vector<IndexRange> share_out(std::span<const int64_t> work, int64_t count);

}  // namespace attnscope
