#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/problem/score.h"

namespace attnscope {

/// Rows of a map added up entry by entry, in double and in their order; of logits those that the
/// mask leaves in, and how many they are. A value.
class RowSums {
 public:
  RowSums() = default;
  RowSums(int64_t entries, Quantity quantity);

  /// A row of [entries].
  void add(std::span<const float> row);
  /// Rows that follow those added here.
  void add(const RowSums& next);
  /// The mean of `rows` rows, [entries]; of logits over those that are not masked, −inf where all
  /// are.
  std::vector<float> mean(int64_t rows) const;

 private:
  std::vector<double> sums_;
  std::vector<int32_t> counts_;  ///< of logits; empty for weights
};

/// The mean of rows that come in groups, in any order and from any thread: groups are added in
/// theirs, so that neither memory nor threads show in the result. Holds no sums but of groups that
/// came. Not thread-safe.
class RowMean {
 public:
  /// Rows of a group; the last one may have fewer.
  static constexpr int64_t kGroupRows = 64;
  static constexpr int64_t groups(int64_t rows) { return (rows + kGroupRows - 1) / kGroupRows; }

  explicit RowMean(int64_t rows) : rows_(rows) {}

  /// Group `group` begins at row group · kGroupRows; each comes once.
  void add(int64_t group, RowSums sums);
  bool complete() const { return added_ == groups(rows_); }
  int64_t groups_left() const { return groups(rows_) - added_; }
  /// The mean of what is complete, which has rows; frees the sums.
  std::vector<float> take();
  /// As take(), but the sum of the rows.
  std::vector<float> take_sum();

 private:
  int64_t rows_;
  int64_t added_ = 0;
  RowSums sums_;
  std::map<int64_t, RowSums> waiting_;  ///< for a group before them
};

}  // namespace attnscope
