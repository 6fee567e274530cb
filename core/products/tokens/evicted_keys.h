#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/query_spans.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// Queries next to each other and a run of keys that came before them in their stream, which they
/// no longer attend to: a cache had dropped them.
struct EvictedKeys {
  IndexRange queries, keys;

  bool holds(int64_t query, int64_t key) const {
    return queries.contains(query) && keys.contains(key);
  }
  friend bool operator==(const EvictedKeys&, const EvictedKeys&) = default;
};

/// The keys that the mask `spans` (in its order, mask query_spans) takes from queries although the
/// key's position is before theirs and no key of that position is left. Ascending by queries, then
/// keys; empty where the token maps have no positions.
std::vector<EvictedKeys> evicted_keys(std::span<const QuerySpan> spans, const TokenGrid& queries,
                                      const TokenGrid& keys);

/// The cells of `block` × `block` entries of the map's part `rows` × `cols` of which every entry is
/// evicted, 1, among others, 0: [row cells, column cells]. `evicted` do not overlap.
std::vector<uint8_t> evicted_cells(std::span<const EvictedKeys> evicted, IndexRange rows,
                                   IndexRange cols, int64_t block);

/// The keys (of `keys` in all) that were evicted for every one of the queries, 1, among others, 0.
/// The other way round with `reverse`: the queries (of `keys` in all) for which all of these keys
/// were.
std::vector<uint8_t> evicted_line(std::span<const EvictedKeys> evicted,
                                  std::span<const int64_t> queries, int64_t keys, bool reverse);

}  // namespace attnscope
