#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/problem/token_grid.h"
#include "viewer/view/looks/tracks_look.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// A number of every row and every key of a head, and the mass between its segments: whole arrays,
/// whose length is the map's. The definitions are those of `stats` (docs/metrics.md). Immutable
/// once it was published.
struct HeadTracks {
  HeadId head;
  int64_t computed = 0;  ///< rows
  bool exact = false;    ///< all of them
  /// [queries] each: −Σ P ln P in nats, ln of the normaliser, Σ P over the text among the keys.
  /// NaN of rows that are not computed yet, and of those that attend to nothing. Empty where the
  /// head has no such number: scores that are no distributions, keys without text.
  std::vector<double> entropy, lse, text_mass;
  /// [keys]: mean weight over the computed rows that attend to anything; NaN where there are none.
  std::vector<double> column_mass;
  /// By the groups of KeySegments: 0 the text, then the frames, then further segments.
  int64_t query_groups = 0, key_groups = 0;
  /// [query_groups, key_groups]: mean over the computed rows of a group of queries of their mass on
  /// a group of keys; NaN where it has no such rows.
  std::vector<double> group_mass;
  /// Mean weight by how far a key lies behind its query in time, in y and in x, each whatever the
  /// other two are: from −(n − 1) to n − 1, [2n − 1]. Over pairs of video tokens whose row is
  /// computed and attends to anything; masked entries count as 0. NaN where there is no such pair.
  /// Empty where queries and keys are not the same tokens of one grid.
  std::vector<double> by_dt, by_dy, by_dx;

  /// Empty for off, and where the head has no such number.
  const std::vector<double>& of(RowTrack track) const;
  const std::vector<double>& of(KeyTrack track) const;
  /// by_dt at the offset of an entry; nothing where it is of no two video tokens, or not known.
  std::optional<double> mean_at_dt(const TokenGrid& queries, int64_t query, const TokenGrid& keys,
                                   int64_t key) const;
  /// The most bytes that the arrays of a map of this size take, but for the few numbers by offset.
  static int64_t bytes(int64_t queries, int64_t keys, int64_t query_groups, int64_t key_groups);
};

/// The numbers that one pixel of a track shows: of the tokens there that have a number.
struct TrackBin {
  double low = 0, high = 0, mean = 0;
  int64_t count = 0;  ///< such tokens; 0: all else is 0
  friend bool operator==(const TrackBin&, const TrackBin&) = default;
};
/// Tokens `first` to `last` (not rounded) along so many pixels. Every token is one pixel's where
/// pixels are the larger; else a pixel is of the token that it begins in. None beyond the values.
std::vector<TrackBin> track_bins(std::span<const double> values, double first, double last,
                                 int64_t pixels);

/// The ends of a track's axis: from the least to the greatest number of the whole head, so that it
/// stands still while the map moves.
struct TrackRange {
  double low = 0, high = 0;
  bool empty = true;         ///< there are no numbers
  bool logarithmic = false;  ///< octaves are equally long; values up to `low` lie at its end
  /// 0 … 1.
  double share(double value) const;
};
/// Masses of keys, which differ by orders of magnitude, go by the logarithm: of the positive ones,
/// six decades below the greatest at most.
TrackRange track_range(std::span<const double> values, bool logarithmic);

/// "nats"; empty: it has none.
std::string_view row_track_unit(RowTrack track);

}  // namespace attnscope
