#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/patterns/mask_recall.h"

namespace attnscope {

/// The quality of one mask on one head. Undefined values are empty (no rows, no V, ‖O‖ = 0).
struct MaskQuality {
  double density = 0;            ///< entries kept / (Nq·Nk)
  double effective_density = 0;  ///< of them those that the call's own mask keeps too / (Nq·Nk)
  std::optional<double> recall;  ///< mean over rows of Σ P·M
  std::optional<double> recall_p05;
  std::optional<double> recall_sampled;  ///< recall over the rows of the oracle
  std::optional<double> oracle_recall;   ///< the best recall at as many entries a row
  std::optional<double> oracle_stderr;   ///< standard error of that mean; nothing where exact
  /// The best recall at as many entries a row as M and the call's own mask keep together.
  std::optional<double> effective_oracle_recall;
  std::optional<double> output_error;  ///< ‖O_M − O‖/‖O‖ over the rows together
  std::optional<double> output_error_mean, output_error_p95;  ///< of the rows' own ratios
  int64_t masked_rows = 0;   ///< the call's own mask leaves nothing: in no mean or quantile
  int64_t empty_rows = 0;    ///< other rows, of which M leaves nothing: recall 0
  int64_t sampled_rows = 0;  ///< rows behind oracle and output errors
};

/// Where MaskQuality holds a number. int64_t is a count, an optional one may be undefined.
using MaskMember = std::variant<double MaskQuality::*, std::optional<double> MaskQuality::*,
                                int64_t MaskQuality::*>;

/// A number of MaskQuality for whoever writes, reads or lists all of them.
struct MaskField {
  std::string_view name, long_name;
  MaskMember member;
};
/// Every number of MaskQuality, in the order in which they are written.
std::span<const MaskField> mask_fields();
/// The number; nothing where it is undefined.
std::optional<double> number_of(const MaskQuality& quality, const MaskField& field);

/// `all` has measured all rows of the head, `sampled` the rows of the oracle; they may be the same
/// object, and then the values are exact.
MaskQuality summarise_mask(const MaskRecall& all, const MaskRecall& sampled, size_t mask,
                           int64_t num_keys, bool values);

/// The q-quantile of `values` (reordered) by linear interpolation between order statistics, as
/// numpy.quantile; nothing where there are none.
std::optional<double> quantile(std::vector<double> values, double q);

}  // namespace attnscope
