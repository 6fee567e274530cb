#include "core/products/differences/difference_sinks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

/// Rows of a run whose sums are kept apart from others'.
constexpr int64_t kSummedRows = 128;
/// Runs that mean rows are added up in, at most: each keeps a row of sums.
constexpr int64_t kMeanRuns = 16;

template <typename T>
constexpr int64_t bytes_of(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

bool has_weight(std::span<const float> row) {
  return std::any_of(row.begin(), row.end(), [](float weight) { return weight > 0; });
}

bool is_there(std::span<const float> row) {
  return std::none_of(row.begin(), row.end(), [](float weight) { return std::isnan(weight); });
}

/// True of a row that has weight in both maps, and all of whose entries are there (none is NaN).
bool is_live(const RowPair& pair) {
  return has_weight(pair.a) && has_weight(pair.b) && is_there(pair.a) && is_there(pair.b);
}

/// Nothing where it is of a masked logit, or not there.
bool has_difference(float a, float b) { return std::isfinite(a) && std::isfinite(b); }

}  // namespace

std::vector<IndexRange> RowNumbers::runs(int64_t rows, int64_t panel_rows) const {
  return equal_runs(rows, panel_rows);
}

int64_t RowNumbers::bytes(int64_t rows, int64_t) const { return bytes_of<RowDifference>(rows); }

void RowNumbers::begin(std::span<const IndexRange> runs, int64_t) {
  rows_.assign(static_cast<size_t>(runs.empty() ? 0 : runs.back().end), {});
}

void RowNumbers::add(int64_t, int64_t row, const RowPair& pair) {
  RowDifference& found = rows_[static_cast<size_t>(row)];
  found = compare_held_rows(pair.a, pair.b, kinds_.distributions && kinds_.whole);
  // Of a part of its keys a row has no angle.
  if (!kinds_.whole) found.cosine = kNoMean;
  const double lse = pair.lse_a - pair.lse_b;
  found.lse = std::isfinite(lse) ? lse : kNoMean;
}

std::vector<IndexRange> PooledDifference::runs(int64_t rows, int64_t panel_rows) const {
  return equal_runs(rows, round_up(std::min(panel_rows, rows), block_));
}

int64_t PooledDifference::bytes(int64_t rows, int64_t keys) const {
  const int64_t cells = ceil_div(rows, block_) * ceil_div(keys, block_);
  // The map that take() gives, beside the sums and counts that it is made of.
  return bytes_of<float>(3 * cells) + bytes_of<double>(cells) + bytes_of<int64_t>(cells);
}

void PooledDifference::begin(std::span<const IndexRange> runs, int64_t keys) {
  rows_ = runs.empty() ? 0 : ceil_div(runs.back().end, block_);
  cols_ = ceil_div(keys, block_);
  const auto cells = static_cast<size_t>(rows_ * cols_);
  max_.assign(cells, 0);
  sums_.assign(cells, 0);
  counts_.assign(cells, 0);
}

void PooledDifference::add(int64_t, int64_t row, const RowPair& pair) {
  const auto keys = static_cast<int64_t>(pair.a.size());
  auto cell = static_cast<size_t>(row / block_ * cols_);
  for (int64_t first = 0; first < keys; first += block_, ++cell) {
    const int64_t end = std::min(keys, first + block_);
    double sum = 0;
    float largest = max_[cell];
    int64_t count = 0;
    for (int64_t j = first; j < end; ++j) {
      const float a = pair.a[static_cast<size_t>(j)], b = pair.b[static_cast<size_t>(j)];
      if (!has_difference(a, b)) continue;
      ++count;
      const float difference = a - b;
      sum += static_cast<double>(a) - b;
      if (std::abs(difference) > std::abs(largest)) largest = difference;
    }
    max_[cell] = largest;
    sums_[cell] += sum;
    counts_[cell] += count;
  }
}

PooledMap PooledDifference::take() {
  PooledMap map{block_, block_, 0, 0, rows_, cols_, std::move(max_), {}};
  map.mean.resize(map.max.size());
  for (size_t i = 0; i < map.mean.size(); ++i) {
    const bool any = counts_[i] > 0;
    map.mean[i] = static_cast<float>(any ? sums_[i] / static_cast<double>(counts_[i]) : kNoMean);
    if (!any) map.max[i] = static_cast<float>(kNoMean);
  }
  return map;
}

std::vector<IndexRange> PartSums::runs(int64_t, int64_t) const {
  std::vector<IndexRange> runs;
  for (const SequencePart& part : query_parts_) {
    for (const IndexRange run : equal_runs(part.tokens.size(), kSummedRows)) {
      runs.push_back({part.tokens.begin + run.begin, part.tokens.begin + run.end});
    }
  }
  return runs;
}

int64_t PartSums::bytes(int64_t, int64_t) const {
  const auto count = static_cast<int64_t>(runs(0, 0).size());
  return bytes_of<int64_t>(2 * count) +
         bytes_of<double>(2 * count * static_cast<int64_t>(key_parts_.size()));
}

void PartSums::begin(std::span<const IndexRange> runs, int64_t) {
  first_rows_.clear();
  for (const IndexRange run : runs) first_rows_.push_back(run.begin);
  counts_.assign(runs.size(), 0);
  sums_.assign(runs.size() * key_parts_.size(), 0);
  sizes_.assign(sums_.size(), 0);
}

void PartSums::add(int64_t run, int64_t, const RowPair& pair) {
  if (!is_live(pair)) return;
  ++counts_[static_cast<size_t>(run)];
  size_t at = static_cast<size_t>(run) * key_parts_.size();
  for (const SequencePart& part : key_parts_) {
    double sum = 0, size = 0;
    for (int64_t j = part.tokens.begin; j < part.tokens.end; ++j) {
      const double difference =
          static_cast<double>(pair.a[static_cast<size_t>(j)]) - pair.b[static_cast<size_t>(j)];
      sum += difference;
      size += std::abs(difference);
    }
    sums_[at] += sum;
    sizes_[at++] += size;
  }
}

PartDifference PartSums::take() const {
  PartDifference found{query_parts_, key_parts_, {}, {}, {}};
  const size_t keys = key_parts_.size();
  size_t run = 0;
  for (const SequencePart& part : query_parts_) {
    int64_t rows = 0;
    std::vector<double> sums(keys, 0), sizes(keys, 0);
    for (; run < first_rows_.size() && first_rows_[run] < part.tokens.end; ++run) {
      rows += counts_[run];
      for (size_t k = 0; k < keys; ++k) {
        sums[k] += sums_[run * keys + k];
        sizes[k] += sizes_[run * keys + k];
      }
    }
    found.rows.push_back(rows);
    for (size_t k = 0; k < keys; ++k) {
      const auto count = static_cast<double>(rows);
      found.difference.push_back(rows > 0 ? sums[k] / count : kNoMean);
      found.absolute.push_back(rows > 0 ? sizes[k] / count : kNoMean);
    }
  }
  return found;
}

std::vector<IndexRange> MeanDifference::runs(int64_t rows, int64_t) const {
  return equal_runs(rows, std::max<int64_t>(1, ceil_div(rows, kMeanRuns)));
}

int64_t MeanDifference::bytes(int64_t rows, int64_t keys) const {
  const auto count = static_cast<int64_t>(runs(rows, 1).size());
  return bytes_of<int64_t>(count) + bytes_of<double>((count + 1) * keys) + bytes_of<float>(keys);
}

void MeanDifference::begin(std::span<const IndexRange> runs, int64_t keys) {
  keys_ = static_cast<size_t>(keys);
  counts_.assign(runs.size(), 0);
  sums_.assign(runs.size() * keys_, 0);
}

void MeanDifference::add(int64_t run, int64_t, const RowPair& pair) {
  if (!is_live(pair)) return;
  ++counts_[static_cast<size_t>(run)];
  double* const sums = sums_.data() + static_cast<size_t>(run) * keys_;
  for (size_t j = 0; j < keys_; ++j) sums[j] += static_cast<double>(pair.a[j]) - pair.b[j];
}

int64_t MeanDifference::counted() const {
  int64_t rows = 0;
  for (const int64_t count : counts_) rows += count;
  return rows;
}

std::vector<float> MeanDifference::take() const {
  std::vector<double> sums(keys_, 0);
  for (size_t run = 0; run < counts_.size(); ++run) {
    for (size_t j = 0; j < keys_; ++j) sums[j] += sums_[run * keys_ + j];
  }
  const int64_t rows = counted();
  std::vector<float> mean;
  for (const double sum : sums) {
    mean.push_back(static_cast<float>(rows > 0 ? sum / static_cast<double>(rows) : kNoMean));
  }
  return mean;
}

}  // namespace attnscope
