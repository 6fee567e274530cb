#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/problem/key_segments.h"
#include "core/reduce/key_counter.h"
#include "core/reduce/reduction.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Sums over rows are formed in float32 over about this many rows, then in integers or double.
inline constexpr int64_t kUnitRows = 48;
/// Column arrays have a multiple of this many elements.
inline constexpr int64_t kColumnPadding = 256;

/// Reduced rows of one panel, and sums over them. A backend fills it row by row, in the panel's
/// order; whoever runs the backend reads it when the panel is done. Sums over rows that may meet
/// those of other panels are integers (value · fixed_scale, rounded once a unit of rows), so that
/// no result depends on how a head is cut into panels or which worker took them. Not thread-safe.
class PanelReduction {
 public:
  /// A row of blocks is complete: `max` and `sum` have an entry a column block. Borrowed.
  using BlockRow = std::function<void(int64_t block_row, std::span<const float> max,
                                      std::span<const double> sum)>;

  /// Bytes of the arrays for panels of up to `rows` rows; `open_units` is the backend's.
  static int64_t bytes(const HeadTask& task, const ReductionRequest& request, int64_t rows,
                       int64_t open_units);
  /// How many rows a panel's boundaries must be a multiple of.
  static int64_t row_multiple(const ReductionRequest& request);

  /// Starts the panel of rows at positions `rows` of the task, which must begin at a multiple of
  /// row_multiple(). `index` are the rows' places in the sequence. The backend may add to the
  /// columns of `open_units` units at once (TileBackend::open_units). Borrows all but block_row.
  void begin(const HeadTask& task, const ReductionRequest& request, IndexRange rows,
             std::span<const int64_t> index, BlockRow block_row, int64_t open_units);

  // Calls for backends, which fill the panel. Rows are numbered from the panel's first one.

  const ReductionRequest& request() const { return *request_; }
  const KeySegments& segments() const { return segments_; }
  RowReduction& row(int64_t i) { return rows_[static_cast<size_t>(i)]; }
  /// Masses of the row's segments, [segments().count()].
  double* masses(int64_t i) { return masses_.data() + i * segments_.count(); }
  /// Running sums and maxima of the weights of every key over the rows of row i's unit; null where
  /// no columns are wanted. 64-byte aligned, [num_keys rounded up to kColumnPadding]. Units count
  /// from that of the rows which advance() has not been told of; open_units of them have arrays.
  float* column_sums(int64_t i) { return columns_of(column_sums_, i); }
  float* column_maxima(int64_t i) { return columns_of(column_maxima_, i); }
  /// Row i's weights are added from here on, one key after the other; null where not wanted.
  float* diagonal(int64_t i) {
    return diagonals_.empty() ? nullptr : diagonals_.data() + (index_.back() - row_index(i));
  }
  /// Where the weights of the video keys (t, y, 0 … W−1) are added for a row at `place`.
  float* offset_line(LatentCoord place, int64_t t, int64_t y);
  bool wants_offsets() const { return !offsets_.empty(); }
  bool wants_shares(int64_t i) const;
  KeyCounter& key_counter() { return key_counter_; }
  int64_t row_index(int64_t i) const { return index_[static_cast<size_t>(i)]; }

  /// The end of row i's unit: what is summed in float32 must be added by then.
  int64_t unit_end(int64_t i) const;
  /// Units whose columns may be added to at once, as begin() was told.
  int64_t open_units() const { return open_units_; }
  /// Rows up to `end` have been added; at a unit's end the running sums are taken in.
  void advance(int64_t end);
  /// True where advance(end) takes in diagonals and offsets: no row from `end` on must have been
  /// added yet.
  bool takes_in(int64_t end) const;

  /// Position of row i among the rows of the task.
  int64_t position(int64_t i) const { return first_position_ + i; }
  /// Column block that a key of the task begins or continues, and how many there are.
  int64_t block_columns() const { return static_cast<int64_t>(block_max_.size()); }
  IndexRange block_keys() const { return task_->keys; }
  /// Power of two that sums are multiplied by before they become integers.
  double fixed_scale() const { return fixed_scale_; }

  /// Sums over all rows of a panel, as a backend has them that does not add row by row: integers
  /// (value · fixed_scale()), rounded in groups of rows that do not depend on the panel. Spans of
  /// what was not asked for are empty; borrowed.
  struct WholePanel {
    std::span<const int64_t> columns;    ///< [num_keys]
    std::span<const int64_t> diagonals;  ///< key 0 of the panel's last row first
    std::span<const int64_t> offsets;
  };
  /// Instead of column_sums(), column_maxima(), diagonal(), offset_line() and advance(): the sums
  /// over rows, and every row of blocks, [block_columns()], counted from the panel's first.
  void take_whole(const WholePanel& sums);
  void take_block_row(int64_t row, std::span<const float> max, std::span<const double> sum);
  /// Rows of blocks that the panel has.
  int64_t block_rows() const;

  // Calls for the reader, once all rows have been added.

  int64_t num_rows() const { return static_cast<int64_t>(index_.size()); }
  const RowReduction& row(int64_t i) const { return rows_[static_cast<size_t>(i)]; }
  const double* masses(int64_t i) const { return masses_.data() + i * segments_.count(); }
  /// Adds the panel's sums to those of the head: `columns` [num_keys], `diagonals`
  /// [num_queries + num_keys − 1], offset k = j − i at element k + num_queries − 1, `offsets`
  /// [2T − 1, 2H − 1, 2W − 1]. Spans of what was not asked for are empty.
  void add_to(std::span<int64_t> columns, std::span<int64_t> diagonals,
              std::span<int64_t> offsets) const;

 private:
  float* columns_of(AlignedVector<float>& columns, int64_t i);
  void take_columns(int64_t i, bool whole);
  void take_block_columns(const float* sums, const float* maxima);
  void finish_block_row(int64_t end);

  const HeadTask* task_ = nullptr;
  const ReductionRequest* request_ = nullptr;
  KeySegments segments_;
  int64_t first_position_ = 0;
  std::span<const int64_t> index_;
  BlockRow block_row_;
  double fixed_scale_ = 0;
  KeyCounter key_counter_;
  std::vector<RowReduction> rows_;
  std::vector<double> masses_;
  int64_t open_units_ = 1;
  AlignedVector<float> column_sums_, column_maxima_;  ///< [open_units_, columns]
  std::vector<float> column_pending_;                 ///< of the unit's blocks so far
  std::vector<int64_t> column_totals_;
  std::vector<float> block_max_;
  std::vector<double> block_sum_;
  std::vector<float> diagonals_, offsets_;
  std::vector<int64_t> diagonal_totals_, offset_totals_;
};

/// The factor of a head's sums before they become integers: a power of two, so that sums over all
/// its rows of values up to 32 (per row) fit int64_t.
double fixed_scale(const AttentionProblem& problem);

}  // namespace attnscope
