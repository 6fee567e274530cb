#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/score.h"
#include "core/products/differences/map_difference.h"
#include "viewer/view/maps/map_geometry.h"

namespace attnscope {

class DeviceTexels;

/// One head of one call of a capture, by places: of the call in Capture::calls(), of the batch
/// item, of the head in the call's tensors.
struct HeadId {
  int64_t call = 0;
  int64_t batch = 0;
  int64_t head = 0;
  /// Of tiles: the number of the order that the map's tokens stand in, as
  /// TileSource::order_number() gave it; 0: as they are stored. Lines, entries and everything else
  /// go by stored tokens.
  int64_t order = 0;
  friend auto operator<=>(const HeadId&, const HeadId&) = default;
};

/// The comparison of a map with that of side B's head, which has the same size.
struct Against {
  HeadId other;
  Difference how = Difference::signed_difference;  ///< not off
  friend auto operator<=>(const Against&, const Against&) = default;
};

/// A tile of the map's pyramid: texel (r, c) of level L covers the 2^L × 2^L entries from row
/// (row·kTileSide + r)·2^L and column (col·kTileSide + c)·2^L on; fewer at the map's far edges.
struct TileId {
  HeadId head;
  Quantity quantity = Quantity::weights;
  int level = 0;
  int64_t row = 0;
  int64_t col = 0;
  std::optional<Against> against = {};  ///< of the difference from this map, entry by entry
  friend auto operator<=>(const TileId&, const TileId&) = default;
};

/// A tile's numbers. Immutable once it was published.
struct MapTile {
  TileId id;
  int64_t rows = 0, cols = 0;  ///< texels; kTileSide but at the far edges
  /// Rows of the map that were computed for each row of texels: 2^level (or what there is) where
  /// the tile is exact, fewer where it is a sample of them.
  int64_t rows_per_texel = 0;
  bool exact = false;
  /// [rows, cols]: over the entries computed, masked ones included as weight 0, or left out
  /// (logits); −inf where the mask leaves none of a texel's entries (of an export's weights nobody
  /// knows), NaN where an export has none of them.
  /// Of differences `max` is the one of the largest size, with its sign; entries that have no
  /// difference are left out, and texels of none are −inf.
  std::vector<float> max, mean;
  /// The texels on the device that computed them, until they are on the screen; may be null.
  std::shared_ptr<DeviceTexels> device;
};

/// One row or column of the map, or the mean or the sum of several: a number a token.
struct LineRequest {
  HeadId head;
  Quantity quantity = Quantity::weights;
  bool reverse = false;         ///< of these keys over all queries, not of these queries over keys
  std::vector<int64_t> tokens;  ///< ascending; places in the sequence; more than one: their mean
  bool sum = false;             ///< of weights alone: what the tokens have together, not their mean
  friend auto operator<=>(const LineRequest&, const LineRequest&) = default;
};

struct MapLine {
  LineRequest request;
  std::vector<float> values;  ///< [keys], or [queries] where reverse
  /// As long as `values`, of weights: 1 where the mask leaves out the entries of every token;
  /// empty: nothing is masked, or nobody knows.
  std::vector<uint8_t> masked = {};
};

/// How much weight rows of a head put on some of its keys on average.
struct MassRequest {
  HeadId head;
  IndexRange rows;  ///< queries; those that attend to nothing do not count
  IndexRange keys;  ///< at most kMostMassKeys
  friend bool operator==(const MassRequest&, const MassRequest&) = default;
  friend auto operator<=>(const MassRequest& a, const MassRequest& b) {
    if (const auto order = a.head <=> b.head; order != 0) return order;
    if (const auto order = a.rows.begin <=> b.rows.begin; order != 0) return order;
    if (const auto order = a.rows.end <=> b.rows.end; order != 0) return order;
    if (const auto order = a.keys.begin <=> b.keys.begin; order != 0) return order;
    return a.keys.end <=> b.keys.end;
  }
};
inline constexpr int64_t kMostMassKeys = 16384;

struct KeyMasses {
  MassRequest request;
  int64_t rows = 0;            ///< that count
  std::vector<double> masses;  ///< [keys]: means over these rows; NaN where there are none
};

/// The difference of a head's map from another's.
struct DifferenceId {
  HeadId head;
  Quantity quantity = Quantity::weights;
  Against against;
  friend auto operator<=>(const DifferenceId&, const DifferenceId&) = default;
};

/// Two heads whose rows are compared: of side A and of side B.
struct HeadsCompared {
  HeadId a, b;
  friend auto operator<=>(const HeadsCompared&, const HeadsCompared&) = default;
};

/// How far each row of one map is from that of another. Immutable once it was published.
struct RowDivergence {
  HeadsCompared heads;
  /// Jensen–Shannon divergence in bits, [queries]; NaN of rows that are not computed yet, and of
  /// those that have no weight in one of the maps.
  std::vector<double> rows;
  int64_t computed = 0;  ///< rows
  bool exact = false;    ///< all of them
};

/// One entry of the map, exact but where an export has rounded it. Numbers that are not known (of
/// an export) are NaN.
struct ProbedEntry {
  int64_t query = 0, key = 0;
  double weight = 0;
  double logit = 0;   ///< −inf where the mask leaves the entry out
  int64_t block = 1;  ///< larger: `weight` and `mean` are of the block of this side around it
  double mean = 0;
  bool rounded = false;  ///< as MapSource::rounding says
};

}  // namespace attnscope
