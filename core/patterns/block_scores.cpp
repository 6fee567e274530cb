#include "core/patterns/block_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// In four sums, which do not wait for each other.
double product(const double* a, const double* b, int64_t width) {
  std::array<double, 4> sums{};
  int64_t c = 0;
  for (; c + 4 <= width; c += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      const int64_t at = c + static_cast<int64_t>(lane);
      sums[lane] += a[at] * b[at];
    }
  }
  for (; c < width; ++c) sums[0] += a[c] * b[c];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

BlockTable table_of(std::span<const int64_t> rows, std::span<const int64_t> columns) {
  BlockTable table{std::ssize(rows), std::ssize(columns), {}};
  table.values.resize(rows.size() * columns.size());
  return table;
}

/// The listed rows of means, each of length 1.
std::vector<double> unit_rows(std::span<const double> means, std::span<const int64_t> list,
                              int64_t width) {
  std::vector<double> units;
  units.reserve(list.size() * static_cast<size_t>(width));
  for (const int64_t block : list) {
    const double* const row = means.data() + block * width;
    const double length = std::sqrt(product(row, row, width));
    for (int64_t c = 0; c < width; ++c) units.push_back(row[c] / length);
  }
  return units;
}

/// ln Σ exp of the pairs of one block's cells with another's.
double cells_of_pair(const CellMeans& queries, const CellMeans& keys, int64_t i, int64_t j,
                     int64_t width, double scale, std::vector<double>& logits) {
  logits.clear();
  const int64_t past_i = std::min((i + 1) * queries.parts, queries.cells);
  const int64_t past_j = std::min((j + 1) * keys.parts, keys.cells);
  for (int64_t a = i * queries.parts; a < past_i; ++a) {
    for (int64_t b = j * keys.parts; b < past_j; ++b) {
      logits.push_back(
          scale * product(queries.means.data() + a * width, keys.means.data() + b * width, width));
    }
  }
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

}  // namespace

BlockTable mean_products(std::span<const double> queries, std::span<const double> keys,
                         std::span<const int64_t> rows, std::span<const int64_t> columns,
                         int64_t width, double factor, const std::stop_token& stop) {
  BlockTable table = table_of(rows, columns);
  for (int64_t i = 0; i < table.rows; ++i) {
    stop_here(stop);
    const double* const q = queries.data() + rows[static_cast<size_t>(i)] * width;
    const std::span<double> out = table.row(i);
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = factor * product(q, keys.data() + columns[j] * width, width);
    }
  }
  return table;
}

BlockTable cell_sums(const CellMeans& queries, const CellMeans& keys, std::span<const int64_t> rows,
                     std::span<const int64_t> columns, int64_t width, double scale,
                     const std::stop_token& stop) {
  BlockTable table = table_of(rows, columns);
  std::vector<double> logits;
  for (int64_t i = 0; i < table.rows; ++i) {
    stop_here(stop);
    const std::span<double> out = table.row(i);
    for (size_t j = 0; j < out.size(); ++j) {
      out[j] = cells_of_pair(queries, keys, rows[static_cast<size_t>(i)], columns[j], width, scale,
                             logits);
    }
  }
  return table;
}

BlockTable importance(std::span<const double> queries, std::span<const double> keys,
                      std::span<const int64_t> rows, std::span<const int64_t> columns,
                      int64_t width, double lambda, const std::stop_token& stop) {
  const std::vector<double> q = unit_rows(queries, rows, width);
  const std::vector<double> k = unit_rows(keys, columns, width);
  std::vector<double> sum(static_cast<size_t>(width));
  for (size_t i = 0; i < k.size(); ++i) sum[i % sum.size()] += k[i];
  const auto others = static_cast<double>(columns.size()) - 1;
  BlockTable table = table_of(rows, columns);
  std::vector<double> redundancy;
  for (size_t j = 0; j < columns.size(); ++j) {
    // The cosines of all keys with this one, its own 1 among them.
    const double* const key = k.data() + j * sum.size();
    const double cosines = product(key, sum.data(), width) - product(key, key, width);
    redundancy.push_back(others > 0 ? (1 + cosines / others) / 2 : 0);
  }
  for (int64_t i = 0; i < table.rows; ++i) {
    stop_here(stop);
    const std::span<double> out = table.row(i);
    for (size_t j = 0; j < out.size(); ++j) {
      const double cosine = product(q.data() + i * width, k.data() + j * sum.size(), width);
      out[j] = lambda * (1 + cosine) / 2 - (1 - lambda) * redundancy[j];
    }
  }
  return table;
}

std::vector<double> score_deviations(std::span<const double> queries, std::span<const double> keys,
                                     std::span<const int64_t> rows, int64_t width, double factor,
                                     bool exact, const std::stop_token& stop) {
  constexpr double kLeast = 1e-6;
  const int64_t blocks = std::ssize(keys) / width;
  std::vector<double> variances(static_cast<size_t>(width));
  for (int64_t j = 0; j < blocks; ++j) {
    for (int64_t c = 0; c < width; ++c) {
      const double k = keys[static_cast<size_t>(j * width + c)];
      variances[static_cast<size_t>(c)] += k * k / static_cast<double>(blocks);
    }
  }
  std::vector<double> deviations;
  for (const int64_t row : rows) {
    stop_here(stop);
    const double* const q = queries.data() + row * width;
    double variance = 0;
    if (exact) {
      // cᵀ·Cov·c is the mean square of the scores.
      for (int64_t j = 0; j < blocks; ++j) {
        const double score = product(q, keys.data() + j * width, width);
        variance += score * score / static_cast<double>(blocks);
      }
    } else {
      for (int64_t c = 0; c < width; ++c) {
        variance += q[c] * q[c] * variances[static_cast<size_t>(c)];
      }
    }
    deviations.push_back(std::sqrt(variance * factor * factor + kLeast));
  }
  return deviations;
}

void softmax_rows(BlockTable& table) {
  for (int64_t i = 0; i < table.rows; ++i) {
    const std::span<double> row = table.row(i);
    const double top = *std::max_element(row.begin(), row.end());
    if (std::isinf(top)) {
      std::fill(row.begin(), row.end(), 0.0);
      continue;
    }
    double sum = 0;
    for (double& x : row) sum += x = std::exp(x - top);
    for (double& x : row) x /= sum;
  }
}

std::vector<int64_t> best_first(std::span<const double> row, int64_t count) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto past = order.begin() + std::min<int64_t>(count, std::ssize(order));
  const auto better = [&](int64_t a, int64_t b) {
    const double x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (past != order.end()) std::nth_element(order.begin(), past, order.end(), better);
  std::sort(order.begin(), past, better);
  order.erase(past, order.end());
  return order;
}

void stop_here(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
}

int64_t share_up(double share, int64_t count) {
  constexpr double kRounding = 1e-9;
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(count) - kRounding));
}

std::vector<double> centre_means(std::vector<double>& means, int64_t blocks, int64_t width) {
  std::vector<double> centre =
      token_mean(means, std::vector<int64_t>(static_cast<size_t>(blocks), 1), width);
  subtract(means, centre);
  return centre;
}

std::vector<double> token_mean(std::span<const double> means, std::span<const int64_t> lengths,
                               int64_t width) {
  std::vector<double> mean(static_cast<size_t>(width));
  const auto tokens =
      static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  for (size_t b = 0; b < lengths.size(); ++b) {
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] += means[b * mean.size() + c] * static_cast<double>(lengths[b]) / tokens;
    }
  }
  return mean;
}

void subtract(std::vector<double>& means, std::span<const double> row) {
  for (size_t i = 0; i < means.size(); ++i) means[i] -= row[i % row.size()];
}

void add(std::vector<double>& means, std::span<const double> row) {
  for (size_t i = 0; i < means.size(); ++i) means[i] += row[i % row.size()];
}

}  // namespace attnscope
