#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/figure/figure_options.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// Tokens first, first + stride, … of a sequence.
struct CutTokens {
  int64_t first = 0, stride = 1, count = 0, total = 0;
  int64_t at(int64_t i) const { return first + i * stride; }
  bool all() const { return count == total; }
};

/// What of one head goes into a page.
struct FigureCut {
  const AttentionProblem* problem = nullptr;
  int64_t batch = 0, head = 0;
  CutTokens rows, keys;

  /// Bytes of the queries and of the keys, as they are stored, of the row sums, and of all of it in
  /// a page.
  int64_t query_bytes() const { return rows.count * problem->q().row_bytes(); }
  int64_t key_bytes() const { return keys.count * problem->k().row_bytes(); }
  int64_t norm_bytes() const;
  int64_t page_bytes() const;
};

/// By --rows, --cols and --stride. Throws Error(usage).
FigureCut make_cut(const FigureRequest& request, const AttentionProblem& problem, int64_t batch,
                   int64_t head);

/// Throws Error(usage) that says what to do where the page would be larger than what mail and
/// browsers bear.
void require_small(const FigureRequest& request, const FigureCut& cut);

/// The cut's queries or keys, packed, as they are stored.
std::vector<std::byte> read_queries(const FigureCut& cut);
std::vector<std::byte> read_keys(const FigureCut& cut);

}  // namespace attnscope
