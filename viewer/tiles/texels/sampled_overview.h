#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "viewer/tiles/texels/texel_row.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// Which rows of a map stand for all, stage by stage. A stage cuts the rows into strata of
/// 2^exponent(stage) rows and has one row of each, at a place that looks random and is always the
/// same; strata of the next stage are a quarter as high, and one of four inherits the row. Pure.
class SamplePlan {
 public:
  explicit SamplePlan(int64_t rows);
  /// None where the map has so few rows that a sample saves nothing.
  int stages() const { return static_cast<int>(exponents_.size()); }
  int exponent(int stage) const { return exponents_[static_cast<size_t>(stage)]; }
  /// Rows that the stage adds, ascending.
  std::vector<int64_t> new_rows(int stage) const;

 private:
  int64_t row_of(int stage, int64_t stratum) const;

  int64_t rows_;
  std::vector<int> exponents_;
};

/// Sampled rows of one head's map, pooled to the texels of its base level, from which tiles of that
/// and all coarser levels are cut. Thread-safe.
class SampledOverview {
 public:
  /// `differences`: texels of TexelRow::of_differences().
  SampledOverview(const MapGeometry& geometry, Quantity quantity, bool differences = false);
  static int64_t bytes(const MapGeometry& geometry, Quantity quantity, bool differences = false);

  /// A row of the map, pooled to texel columns of the base level.
  void add(int64_t row, const TexelRow& texels);
  /// The tile as the rows so far show it, when every stratum of 2^exponent rows has one: texels
  /// lower than that share its row with their neighbours.
  std::shared_ptr<MapTile> cut(const TileId& id, int exponent) const;

 private:
  float extreme(float a, float b) const;
  void add_up(int64_t first, int64_t end, IndexRange cols, TexelRow& total, int64_t& rows) const;

  const MapGeometry geometry_;
  const Quantity quantity_;
  const bool differences_;
  const int64_t cols_;
  mutable std::mutex mutex_;
  std::vector<float> max_, sum_;  ///< [texel_rows(base), texel_cols(base)]
  std::vector<int32_t> count_;    ///< the same, logits and differences only
  std::vector<int32_t> rows_;     ///< rows added, [texel_rows(base)]
};

}  // namespace attnscope
