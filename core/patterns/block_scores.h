#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace attnscope {

/// log₂ e.
inline constexpr double kLog2E = 1.4426950408889634;

/// A number for each pair of some blocks of queries and of keys, [rows, columns].
struct BlockTable {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;

  std::span<double> row(int64_t i) {
    return {values.data() + i * columns, static_cast<size_t>(columns)};
  }
  std::span<const double> row(int64_t i) const {
    return {values.data() + i * columns, static_cast<size_t>(columns)};
  }
};

// Those with a stop throw Error(interrupted) soon after it.

/// factor·q̄·k̄ of the listed blocks; the means are [blocks, width].
BlockTable mean_products(std::span<const double> queries, std::span<const double> keys,
                         std::span<const int64_t> rows, std::span<const int64_t> columns,
                         int64_t width, double factor, const std::stop_token& stop);
/// Means of the cells that a side's blocks are cut into: [cells, width], `parts` a block, the last
/// block perhaps with fewer.
struct CellMeans {
  std::span<const double> means;
  int64_t parts = 1, cells = 0;
};
/// ln Σ exp(scale·q̄·k̄) over the pairs of cells of the listed blocks.
BlockTable cell_sums(const CellMeans& queries, const CellMeans& keys, std::span<const int64_t> rows,
                     std::span<const int64_t> columns, int64_t width, double scale,
                     const std::stop_token& stop);
/// λ·(1 + cos(q̄, k̄))/2 − (1 − λ)·(the mean of (1 + cos(k̄, k̄′))/2 over the other listed blocks k̄′).
BlockTable importance(std::span<const double> queries, std::span<const double> keys,
                      std::span<const int64_t> rows, std::span<const int64_t> columns,
                      int64_t width, double lambda, const std::stop_token& stop);
/// √(factor²·variance + 1e-6, which is comfy-kitchen's) of the scores of each listed row over all
/// blocks of keys, whose means are centred: Σ c²·Var(k̄) a channel, or `exact` cᵀ·Cov(k̄)·c.
std::vector<double> score_deviations(std::span<const double> queries, std::span<const double> keys,
                                     std::span<const int64_t> rows, int64_t width, double factor,
                                     bool exact, const std::stop_token& stop);
/// Makes each row its softmax; a row of −∞ alone becomes zeros.
void softmax_rows(BlockTable& table);
/// The `count` columns of a row with the largest numbers, the largest first, equal ones by the
/// lower index; all of them where there are fewer.
std::vector<int64_t> best_first(std::span<const double> row, int64_t count);
/// Throws Error(interrupted) after a stop.
void stop_here(const std::stop_token& stop);
/// ⌈share·count⌉; a share that is a whole number but for rounding is that number.
int64_t share_up(double share, int64_t count);

/// The mean of `blocks` rows of means, which is taken off each of them.
std::vector<double> centre_means(std::vector<double>& means, int64_t blocks, int64_t width);
/// The mean over tokens of blocks that have so many.
std::vector<double> token_mean(std::span<const double> means, std::span<const int64_t> lengths,
                               int64_t width);
void subtract(std::vector<double>& means, std::span<const double> row);
void add(std::vector<double>& means, std::span<const double> row);

}  // namespace attnscope
