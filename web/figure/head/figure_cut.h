#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/problem/attention_problem.h"
#include "web/figure/head/figure_choice.h"

namespace attnscope {

/// Tokens first, first + stride, … below end of a sequence.
struct CutTokens {
  int64_t first = 0, stride = 1, count = 0, total = 0, end = 0;
  int64_t at(int64_t i) const { return first + i * stride; }
  bool all() const { return count == total; }
};

/// The rows and keys of one head that go into a page.
struct FigureCut {
  const AttentionProblem* problem = nullptr;
  int64_t batch = 0, head = 0;
  CutTokens rows, keys;
  FigureChoice choice;  ///< that it is by

  /// Bytes of the queries and of the keys, as they are stored, of the row sums, and of all of it in
  /// a page.
  int64_t query_bytes() const { return rows.count * problem->q().row_bytes(); }
  int64_t key_bytes() const { return keys.count * problem->k().row_bytes(); }
  int64_t norm_bytes() const;
  int64_t page_bytes() const;
  /// Blocks of the base have 2^level entries on a side.
  int base_level() const;
  /// Of its texels' codes, before they are encoded.
  int64_t base_bytes() const;
};

/// Borrows the problem. Throws Error(usage) for ranges that are none, or lie outside.
FigureCut make_cut(const FigureChoice& choice, const AttentionProblem& problem, int64_t batch,
                   int64_t head);

/// Throws FigureRefusal where no page can be made of the cut: weights may have either sign, the
/// mask has biases, or the page would be larger than what mail and browsers bear, for which it says
/// what to do.
void require_page(const FigureCut& cut);

/// Bytes of a page, but for words and a mask.
int64_t whole_page_bytes(const FigureCut& cut);

/// The cut's queries or keys, packed, as they are stored.
std::vector<std::byte> read_queries(const FigureCut& cut);
std::vector<std::byte> read_keys(const FigureCut& cut);

}  // namespace attnscope
