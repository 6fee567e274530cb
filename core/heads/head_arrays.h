#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/reduce/head_totals.h"

namespace attnscope {

/// The arrays that can be kept of a head beside its numbers; see docs/metrics.md.
enum class HeadArray : uint8_t {
  frame_frame,
  column_mass,
  diagonal_profile,
  offset_kernel,
  entropy_rows,
  max_weight_rows,
  max_key_rows,
  lse_rows,
};

/// The name of an array, and where its values come from: rows, or totals over rows.
struct HeadArrayInfo {
  std::string_view name;               ///< in JSON, HDF5 and --with
  std::vector<std::string_view> axes;  ///< slowest first
  std::string_view long_name;
  /// The value of a row in a reduction of this request; NaN where it has none. Null for the arrays
  /// of totals.
  double (*of_row)(const RowReduction&, const ReductionRequest&) = nullptr;
};
/// In the order of HeadArray.
std::span<const HeadArrayInfo> head_arrays();
const HeadArrayInfo& info_of(HeadArray which);
std::optional<HeadArray> parse_head_array(std::string_view name);

/// An array of one head.
struct HeadArrayValues {
  HeadArray which = HeadArray::frame_frame;
  std::vector<int64_t> shape;  ///< an extent an axis
  std::vector<double> values;  ///< row-major; NaN where undefined
};

/// Asks for what the arrays need beyond metrics_request().
void request_arrays(ReductionRequest& request, std::span<const HeadArray> arrays);

/// An array that is made of the totals of a head of `problem`.
HeadArrayValues array_of_totals(HeadArray which, const HeadTotals& totals,
                                const AttentionProblem& problem);

}  // namespace attnscope
