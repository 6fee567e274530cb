#include "core/heads/head_arrays.h"

#include <algorithm>
#include <array>
#include <limits>

namespace attnscope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Row = const RowReduction&;
using Request = const ReductionRequest&;

/// Text as pseudo-frame 0, then the latent frames and further segments.
HeadArrayValues frame_frame(const HeadTotals& totals, const AttentionProblem& problem) {
  const auto queries = text_and_frames(problem.query_tokens());
  const auto keys = text_and_frames(problem.key_tokens());
  HeadArrayValues matrix{HeadArray::frame_frame, {std::ssize(queries), std::ssize(keys)}, {}};
  for (const std::vector<int64_t>& from : queries) {
    for (const std::vector<int64_t>& to : keys) {
      matrix.values.push_back(totals.mass_between(from, to));
    }
  }
  return matrix;
}

HeadArrayValues line(HeadArray which, std::vector<double> values) {
  const auto extent = static_cast<int64_t>(values.size());
  return {which, {extent}, std::move(values)};
}

}  // namespace

std::span<const HeadArrayInfo> head_arrays() {
  static const std::array<HeadArrayInfo, 8> arrays{
      {{"frame_frame",
        {"query_segment", "key_segment"},
        "mean over the rows of a query segment of the mass on a key segment"},
       {"column_mass", {"key"}, "mean over rows of the weight of each key"},
       {"diagonal_profile", {"diagonal"}, "sum over queries i of the weight of key i + k"},
       {"offset_kernel",
        {"offset_t", "offset_y", "offset_x"},
        "share of the mass between video tokens by the offset of key from query"},
       {"entropy_rows",
        {"query"},
        "entropy of each row in nats",
        [](Row row, Request r) { return row.masked || !r.entropy ? kNone : row.entropy; }},
       {"max_weight_rows",
        {"query"},
        "largest weight of each row",
        [](Row row, Request) { return row.masked ? kNone : row.max_weight; }},
       {"max_key_rows",
        {"query"},
        "key of each row's largest weight, -1 where masked",
        [](Row row, Request) { return row.masked ? -1 : static_cast<double>(row.max_key); }},
       {"lse_rows", {"query"}, "ln of each row's normaliser", [](Row row, Request) {
          return row.masked || row.norm.sum <= 0 ? kNone : row.norm.lse();
        }}}};
  return arrays;
}

const HeadArrayInfo& info_of(HeadArray which) { return head_arrays()[static_cast<size_t>(which)]; }

std::optional<HeadArray> parse_head_array(std::string_view name) {
  const std::span<const HeadArrayInfo> all = head_arrays();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const HeadArrayInfo& a) { return a.name == name; });
  if (found == all.end()) return std::nullopt;
  return static_cast<HeadArray>(found - all.begin());
}

void request_arrays(ReductionRequest& request, std::span<const HeadArray> arrays) {
  const auto wanted = [&](HeadArray which) {
    return std::find(arrays.begin(), arrays.end(), which) != arrays.end();
  };
  request.max_keys = wanted(HeadArray::max_key_rows);
  request.diagonals = wanted(HeadArray::diagonal_profile);
  request.offsets = wanted(HeadArray::offset_kernel);
}

HeadArrayValues array_of_totals(HeadArray which, const HeadTotals& totals,
                                const AttentionProblem& problem) {
  if (which == HeadArray::frame_frame) return frame_frame(totals, problem);
  if (which == HeadArray::column_mass) return line(which, totals.column_mass());
  if (which == HeadArray::diagonal_profile) return line(which, totals.diagonal_profile());
  const TokenGrid& keys = problem.key_tokens();
  return {which,
          {2 * keys.frames() - 1, 2 * keys.height() - 1, 2 * keys.width() - 1},
          totals.offset_kernel()};
}

}  // namespace attnscope
