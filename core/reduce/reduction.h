#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/problem/attention_problem.h"
#include "core/problem/key_segments.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// The metrics that are taken from the weights of a head's rows as they pass by, as
/// docs/metrics.md defines them; a value.
struct ReductionRequest {
  /// Segment masses and the largest weight of every row.
  bool rows = false;
  /// Entropy of every row (not for sigmoid, whose rows are no distributions).
  bool entropy = false;
  /// The key of the largest weight.
  bool max_keys = false;
  /// Masses at and around the row's own place in the grid; queries and keys must be the same
  /// tokens.
  bool places = false;
  /// Reach in y and x of PlaceMasses::band.
  int64_t band = 0;
  /// Σ over rows of each key's weight.
  bool columns = false;
  /// Σ_i P(i, i + k).
  bool diagonals = false;
  /// Mass by (Δt, Δy, Δx) over pairs of video tokens; queries and keys must be the same tokens.
  bool offsets = false;
  /// Side of the square blocks whose largest weight and mass are taken; 0: none.
  int64_t block = 0;
  /// Rows (indices in the sequence, ascending) whose smallest key sets are counted. Borrowed.
  std::span<const int64_t> share_rows;

  /// Column masses need the number of rows that are not masked.
  bool any_rows() const {
    return rows || entropy || max_keys || places || columns || !share_rows.empty();
  }
  bool any_columns() const { return columns || block > 0; }
  /// Nothing but sums and maxima over rows.
  bool columns_alone() const { return block > 0 && !any_rows() && !diagonals && !offsets; }
};

/// Masses at and around a video row's place (t, y, x).
struct PlaceMasses {
  double same_position = 0;  ///< at (y, x) of all other frames
  double band = 0;           ///< |Δy|, |Δx| ≤ ReductionRequest::band, in all frames
  double local = 0;          ///< |Δt| ≤ 1, |Δy|, |Δx| ≤ 2

  PlaceMasses& operator+=(const PlaceMasses& other) {
    same_position += other.same_position;
    band += other.band;
    local += other.local;
    return *this;
  }
};

/// Shares of a row's mass of which is counted how many of its largest keys hold them.
inline constexpr std::array<double, 5> kKeyShares{0.5, 0.8, 0.9, 0.95, 0.99};
using KeyCounts = std::array<int64_t, kKeyShares.size()>;

/// The metrics of one row; those that were not asked for stay 0.
struct RowReduction {
  RowNorm norm;
  bool masked = false;    ///< no key counts: all else is 0
  double entropy = 0;     ///< −Σ P ln P, nats
  double max_weight = 0;  ///< max_j P
  int64_t max_key = -1;   ///< the first key with it
  PlaceMasses places;
  KeyCounts keys_for{};
};

/// The largest reach b in y and x with T·(2b + 1)² ≤ H·W, so that all frames within it hold about
/// as many keys as one frame does; 0 at least.
int64_t default_band(const TokenGrid& grid);

/// Weights of a row as a backend has them: entry · factor. Borrowed.
template <typename Real>
struct RowEntries {
  const Real* entries = nullptr;
  double factor = 1;
  double operator[](int64_t key) const { return static_cast<double>(entries[key]) * factor; }
};

/// A box of a token grid, cut off at its edges.
struct PlaceBox {
  IndexRange frames, lines, columns;
};

/// The keys that PlaceMasses of a row at `place` adds up: those at its position in earlier and in
/// later frames, and around it.
struct PlaceBoxes {
  PlaceBox earlier, later, band, local;
};
PlaceBoxes place_boxes(const TokenGrid& keys, LatentCoord place, int64_t band);

/// PlaceMasses of a whole row at `place`, in double, in the order of the keys.
PlaceMasses place_masses(const RowEntries<double>& row, const TokenGrid& keys, LatentCoord place,
                         int64_t band);

}  // namespace attnscope
