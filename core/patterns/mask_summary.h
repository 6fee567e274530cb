#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

  // Of the lab alone.
  std::optional<double> recall_stderr;        ///< of recall_sampled; nothing where exact
  std::optional<double> best_block_recall;    ///< the best recall at as many blocks a row of blocks
  std::optional<double> output_cosine;        ///< of O_M and O, all sampled rows as one vector
  std::optional<double> output_error_stderr;  ///< of output_error_mean; nothing where exact
  std::optional<double> forced_mass;  ///< mean over rows of the mass of blocks that are not chosen
  std::optional<double> divergence;   ///< JS(P‖P_M), bits, where terms stand for what is dropped
  std::optional<double> visited;      ///< pairs of blocks that a kernel computes, of all
  std::optional<int64_t> ties;        ///< pairs that rounding may decide
  /// ‖O_M − O‖/‖O‖ of the queries of each segment that has any.
  std::vector<std::pair<std::string, double>> segment_errors;
};

/// Where MaskQuality holds a number. int64_t is a count, an optional one may be undefined.
using MaskMember = std::variant<double MaskQuality::*, std::optional<double> MaskQuality::*,
                                int64_t MaskQuality::*, std::optional<int64_t> MaskQuality::*>;

/// A number of MaskQuality for whoever writes, reads or lists all of them.
struct MaskField {
  std::string_view name, long_name;
  MaskMember member;
};
/// The numbers of `mask`, in the order in which they are written.
std::span<const MaskField> mask_fields();
/// Those of the lab.
std::span<const MaskField> lab_fields();
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
