#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/attention_problem.h"
#include "viewer/tiles/texels/pyramid_tiles.h"
#include "viewer/view/maps/map_geometry.h"

namespace attnscope {

/// Which entries of a head a mask leaves out: a weight of 0 alone does not tell. Reads the mask's
/// tensor where it has one; throws what Mask::classify() does. Borrows the problem. Thread-safe.
class MaskedEntries {
 public:
  MaskedEntries(const AttentionProblem& problem, const HeadId& head)
      : problem_(&problem), head_(head) {}

  /// True where there is a mask at all.
  bool any() const { return !problem_->mask().is_none(); }
  /// True where the mask leaves out all of these entries.
  bool all(IndexRange queries, IndexRange keys) const;
  /// Gives the texels of weights in these rows of the tile −inf where all entries are masked; true
  /// where there are such.
  bool mark(MapTile& tile, const MapGeometry& geometry, IndexRange texel_rows) const;
  /// The tile, or a copy of it with its masked texels marked.
  TilePtr marked(const TilePtr& tile, const MapGeometry& geometry) const;
  /// Of the rows' entries at every key, whether all are masked: 1, else 0.
  std::vector<uint8_t> keys_masked_in(const std::vector<int64_t>& rows) const;
  /// Of these keys' entries in every row of `rows`.
  std::vector<uint8_t> rows_masked_at(IndexRange rows, const std::vector<int64_t>& keys) const;

 private:
  const AttentionProblem* problem_;
  const HeadId head_;
};

}  // namespace attnscope
