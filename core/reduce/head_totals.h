#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/reduce/panel_reduction.h"

namespace attnscope {

/// Values of one row that are averaged over rows.
enum class RowValue : uint8_t {
  entropy,
  max_weight,
  text_mass,
  padding_mass,
  video_mass,
  same_frame_mass,
  same_position_mass,
  spatial_score,
  temporal_score,
  local_mass,
  sink_share,
  keys_for_50,  ///< the first of as many as kKeyShares, in its order
  keys_for_80,
  keys_for_90,
  keys_for_95,
  keys_for_99,
};
inline constexpr size_t kRowValues = 16;

/// Numbers of keys are summed in this unit, so that they stay below the values that fixed_scale()
/// allows.
inline constexpr double kCountUnit = 0x1p20;
constexpr bool is_key_count(RowValue which) { return which >= RowValue::keys_for_50; }

/// Number, sum and sum of squares of a value over rows, as integers: exact and independent of the
/// order. Values are multiplied by a power of two and rounded once each.
class ValueSum {
 public:
  void add(double value, double scale);
  void merge(const ValueSum& other);
  int64_t count() const { return count_; }
  double mean(double scale) const;
  /// Of the mean, for rows drawn from `population` rows (finite population correction); 0 where all
  /// rows were taken.
  double standard_error(double scale, int64_t population) const;

 private:
  int64_t count_ = 0;
  int64_t sum_ = 0;
  // Squares have more digits than 64 bits hold.
  int64_t squares_high_ = 0;
  int64_t squares_low_ = 0;
};

/// Sums over a head's rows, added panel by panel in any order.
/// A plain value; not thread-safe.
class HeadTotals {
 public:
  HeadTotals() = default;
  HeadTotals(const HeadTask& task, const ReductionRequest& request);
  static int64_t bytes(const HeadTask& task, const ReductionRequest& request);

  /// Adds a panel of the head.
  void add(const HeadTask& task, const PanelReduction& panel);

  int64_t rows() const { return rows_; }
  int64_t masked_rows() const { return masked_rows_; }
  double max_weight_peak() const { return max_weight_peak_; }
  /// The largest logit of all rows, with the mask's bias; of a softmax, else NaN. NaN without rows
  /// that are not masked.
  double max_logit() const { return max_logit_; }
  /// Segments are the groups of KeySegments: text is one, 0, padding included (models such as
  /// CogVideoX attend to it); 1 … T are the frames, and a token map's other segments follow. Query
  /// rows of a segment that are not masked.
  int64_t segment_rows(int64_t segment) const {
    return segment_rows_[static_cast<size_t>(segment)];
  }
  int64_t query_segments() const { return static_cast<int64_t>(segment_rows_.size()); }
  int64_t key_segments() const { return key_segments_; }
  /// Mean over the rows of a query segment of the mass on a key segment; NaN without rows.
  double segment_mass(int64_t query_segment, int64_t key_segment) const;
  /// Mean mass that rows of several query segments have on several key segments; NaN without rows.
  double mass_between(IndexRange query_segments, IndexRange key_segments) const;
  double mass_between(std::span<const int64_t> query_segments,
                      std::span<const int64_t> key_segments) const;
  const ValueSum& value(RowValue which) const { return values_[static_cast<size_t>(which)]; }
  double mean(RowValue which) const { return value(which).mean(scale_of(which)); }
  double standard_error(RowValue which, int64_t population) const {
    return value(which).standard_error(scale_of(which), population);
  }
  /// Mean over all rows that are not masked of the weight of each key, [num_keys].
  std::vector<double> column_mass() const;
  /// Σ_i P(i, i + k) for k = −(num_queries − 1) … num_keys − 1.
  std::vector<double> diagonal_profile() const;
  /// Mass by (Δt, Δy, Δx), [2T − 1, 2H − 1, 2W − 1], over all rows.
  std::vector<double> offset_sums() const;
  /// offset_sums() as shares of all mass between video tokens.
  std::vector<double> offset_kernel() const;

 private:
  double scale_of(RowValue which) const {
    return is_key_count(which) ? scale_ / kCountUnit : scale_;
  }
  void add_row(const HeadTask& task, const PanelReduction& panel, int64_t row);

  double scale_ = 1;
  int64_t rows_ = 0, masked_rows_ = 0;
  double max_weight_peak_ = 0;
  double max_logit_ = std::numeric_limits<double>::quiet_NaN();
  int64_t key_segments_ = 0;
  std::vector<int64_t> segment_rows_;
  std::vector<int64_t> segment_masses_;  ///< [query segments, key segments]
  std::array<ValueSum, kRowValues> values_;
  std::vector<int64_t> columns_, diagonals_, offsets_;
};

}  // namespace attnscope
