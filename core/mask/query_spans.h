#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// Queries next to each other, and a run of keys that they attend to.
struct QuerySpan {
  IndexRange queries, keys;
  /// Of these keys query i attends to those with j − keys.begin ≤ i − queries.begin: the diagonal
  /// begins in the span's first corner.
  bool causal = false;

  /// The keys of the span that its query `query` attends to; not empty.
  IndexRange keys_of(int64_t query) const {
    if (!causal) return keys;
    return {keys.begin, std::min(keys.end, keys.begin + query - queries.begin + 1)};
  }
  friend bool operator==(const QuerySpan&, const QuerySpan&) = default;
};

/// The most spans of a mask: what a row each of the longest sequences needs, in a few MiB.
inline constexpr int64_t kMostQuerySpans = 1 << 20;

/// The keys of the spans that a query is in; a query in no span attends to nothing. Spans with some
/// of the same queries have all of them in common, and no keys.
///
/// `spans`: i64 [n, 5], a span a row: first and past the last query, first and past the last key,
/// and 1 where it is causal, else 0; ascending by first query, then by first key. Read when its
/// shape is checked, and the same for all batch items and heads. Throws Error(usage) where it is of
/// another type or has other axes; check_shape() names the first row that is out of bounds or out
/// of order, and may throw what reading throws.
Mask query_spans_mask(std::shared_ptr<const TensorSource> spans);

/// The spans of such a tensor, for a map of so many queries and keys; throws as that check does.
std::vector<QuerySpan> read_query_spans(const TensorSource& spans, int64_t queries, int64_t keys);

/// The rows of such a tensor, one after the other.
std::vector<int64_t> query_span_rows(std::span<const QuerySpan> spans);

}  // namespace attnscope
