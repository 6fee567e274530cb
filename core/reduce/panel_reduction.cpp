#include "core/reduce/panel_reduction.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

int64_t offset_count(const TokenGrid& grid) {
  return (2 * grid.frames() - 1) * (2 * grid.height() - 1) * (2 * grid.width() - 1);
}

int64_t column_count(const HeadTask& task) {
  return round_up(task.problem->num_keys(), kColumnPadding);
}

/// Sum of up to 2^31 floats in eight lanes that a compiler may hold in vectors.
double sum_of(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes] = {};
  double total = 0;
  int64_t i = 0;
  while (i + kLanes <= count) {
    // A lane never adds more than 32 terms.
    const int64_t end = std::min(count, i + 32 * kLanes);
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
    }
    for (float& lane : lanes) {
      total += static_cast<double>(lane);
      lane = 0;
    }
  }
  for (; i < count; ++i) total += static_cast<double>(values[i]);
  return total;
}

float max_of(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = lanes[lane] < values[i + lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

constexpr int64_t kFold = 16;

/// Combines kFold lanes in a fixed tree; loops of constant length become vector instructions.
template <typename Combine>
float fold(float (&lanes)[kFold], Combine combine) {
  for (int64_t l = 0; l < 8; ++l) lanes[l] = combine(lanes[l], lanes[l + 8]);
  for (int64_t l = 0; l < 4; ++l) lanes[l] = combine(lanes[l], lanes[l + 4]);
  return combine(combine(lanes[0], lanes[1]), combine(lanes[2], lanes[3]));
}

/// Sum and largest of a whole block of 16, 32, … 256 columns.
void add_even_block(const float* sums, const float* maxima, int64_t count, double& sum,
                    float& max) {
  float sum_lanes[kFold];
  float max_lanes[kFold];
  for (int64_t l = 0; l < kFold; ++l) {
    sum_lanes[l] = sums[l];
    max_lanes[l] = maxima[l];
  }
  for (int64_t i = kFold; i < count; i += kFold) {
    for (int64_t l = 0; l < kFold; ++l) {
      sum_lanes[l] += sums[i + l];
      max_lanes[l] = max_lanes[l] < maxima[i + l] ? maxima[i + l] : max_lanes[l];
    }
  }
  const auto larger = [](float a, float b) { return a < b ? b : a; };
  sum += static_cast<double>(fold(sum_lanes, [](float a, float b) { return a + b; }));
  max = larger(max, fold(max_lanes, larger));
}

/// Adds float sums to integers and clears them.
void take_in(std::span<float> sums, std::span<int64_t> totals, double scale) {
  for (size_t i = 0; i < totals.size(); ++i) {
    totals[i] += std::llrint(static_cast<double>(sums[i]) * scale);
  }
  std::fill(sums.begin(), sums.end(), 0.0f);
}

}  // namespace

double fixed_scale(const AttentionProblem& problem) {
  const auto bits = [](int64_t n) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
  };
  int exponent = 57 - bits(problem.num_queries());
  // Rows that are not normalised may add up to a weight of 1 for every key.
  if (!is_normalised(problem.score())) exponent -= bits(problem.num_keys());
  return std::ldexp(1.0, exponent);
}

int64_t PanelReduction::row_multiple(const ReductionRequest& request) {
  if (request.block == 0) return kUnitRows;
  return request.block * ceil_div(kUnitRows, request.block);
}

int64_t PanelReduction::bytes(const HeadTask& task, const ReductionRequest& request, int64_t rows,
                              int64_t open_units) {
  const AttentionProblem& problem = *task.problem;
  const TokenGrid& grid = problem.key_tokens();
  int64_t bytes = rows * static_cast<int64_t>(sizeof(RowReduction));
  bytes += rows * (grid.frames() + 3) * 8;
  if (request.any_columns()) bytes += open_units * column_count(task) * 8;
  if (request.columns) bytes += problem.num_keys() * 12;
  if (request.block > 0) bytes += ceil_div(task.keys.size(), request.block) * 12;
  // Diagonals of a panel span its rows and all keys.
  const int64_t reach = task.row_list.empty() ? rows : problem.num_queries();
  if (request.diagonals) bytes += (problem.num_keys() + reach) * 12;
  if (request.offsets) bytes += offset_count(grid) * 12;
  if (!request.share_rows.empty()) bytes += KeyCounter::bytes(problem.num_keys());
  return bytes;
}

void PanelReduction::begin(const HeadTask& task, const ReductionRequest& request, IndexRange rows,
                           std::span<const int64_t> index, BlockRow block_row, int64_t open_units) {
  assert(rows.begin % row_multiple(request) == 0 && !index.empty());
  task_ = &task;
  request_ = &request;
  const AttentionProblem& problem = *task.problem;
  segments_ = KeySegments(problem.key_tokens(), task.batch);
  first_position_ = rows.begin;
  index_ = index;
  block_row_ = std::move(block_row);
  fixed_scale_ = attnscope::fixed_scale(problem);
  rows_.assign(index.size(), {});
  masses_.assign(index.size() * static_cast<size_t>(segments_.count()), 0);
  const auto columns = static_cast<size_t>(request.any_columns() ? column_count(task) : 0);
  open_units_ = open_units;
  column_sums_.assign(columns * static_cast<size_t>(open_units), 0);
  column_maxima_.assign(columns * static_cast<size_t>(open_units), 0);
  column_pending_.assign(request.columns ? columns : 0, 0);
  column_totals_.assign(request.columns ? static_cast<size_t>(problem.num_keys()) : 0, 0);
  const auto blocks =
      static_cast<size_t>(request.block > 0 ? ceil_div(task.keys.size(), request.block) : 0);
  block_max_.assign(blocks, 0);
  block_sum_.assign(blocks, 0);
  const auto diagonals = static_cast<size_t>(
      request.diagonals ? problem.num_keys() + index.back() - index.front() : 0);
  diagonals_.assign(diagonals, 0);
  diagonal_totals_.assign(diagonals, 0);
  const auto offsets =
      static_cast<size_t>(request.offsets ? offset_count(problem.key_tokens()) : 0);
  offsets_.assign(offsets, 0);
  offset_totals_.assign(offsets, 0);
}

float* PanelReduction::offset_line(LatentCoord place, int64_t t, int64_t y) {
  const TokenGrid& grid = task_->problem->key_tokens();
  const int64_t dt = t - place.t + grid.frames() - 1;
  const int64_t dy = y - place.y + grid.height() - 1;
  const int64_t dx = grid.width() - 1 - place.x;
  return offsets_.data() + (dt * (2 * grid.height() - 1) + dy) * (2 * grid.width() - 1) + dx;
}

bool PanelReduction::wants_shares(int64_t i) const {
  const auto& rows = request_->share_rows;
  return std::binary_search(rows.begin(), rows.end(), row_index(i));
}

int64_t PanelReduction::unit_end(int64_t i) const {
  const int64_t position = first_position_ + i;
  const int64_t block = request_->block > 0 ? request_->block : kUnitRows;
  const int64_t block_begin = position / block * block;
  const int64_t unit_begin = block_begin + (position - block_begin) / kUnitRows * kUnitRows;
  const int64_t end = std::min(unit_begin + kUnitRows, block_begin + block);
  return std::min(end - first_position_, num_rows());
}

float* PanelReduction::columns_of(AlignedVector<float>& columns, int64_t i) {
  if (columns.empty()) return nullptr;
  const int64_t position = first_position_ + i;
  const int64_t block = request_->block > 0 ? request_->block : kUnitRows;
  const int64_t unit = position / block * ceil_div(block, kUnitRows) + position % block / kUnitRows;
  return columns.data() + unit % open_units_ * column_count(*task_);
}

bool PanelReduction::takes_in(int64_t end) const {
  if (end != unit_end(end - 1)) return false;
  // Small blocks end more often than sums need to become integers.
  return request_->block == 0 || request_->block >= kUnitRows ||
         (first_position_ + end) % row_multiple(*request_) == 0 || end == num_rows();
}

void PanelReduction::advance(int64_t end) {
  assert(end > 0 && end <= num_rows());
  if (end != unit_end(end - 1)) return;
  const bool whole = takes_in(end);
  if (!column_sums_.empty()) take_columns(end - 1, whole);
  if (whole) take_in(diagonals_, diagonal_totals_, fixed_scale_);
  if (whole) take_in(offsets_, offset_totals_, fixed_scale_);
  if (request_->block > 0) finish_block_row(end);
}

void PanelReduction::take_whole(const WholePanel& sums) {
  const auto take = [](std::span<const int64_t> from, std::vector<int64_t>& to) {
    assert(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
  };
  take(sums.columns, column_totals_);
  take(sums.diagonals, diagonal_totals_);
  take(sums.offsets, offset_totals_);
}

void PanelReduction::take_block_row(int64_t row, std::span<const float> max,
                                    std::span<const double> sum) {
  assert(static_cast<int64_t>(max.size()) == block_columns() && max.size() == sum.size());
  block_row_(first_position_ / request_->block + row, max, sum);
}

int64_t PanelReduction::block_rows() const {
  return request_->block > 0 ? ceil_div(num_rows(), request_->block) : 0;
}

void PanelReduction::take_columns(int64_t i, bool whole) {
  const int64_t columns = column_count(*task_);
  float* const sums = column_sums(i);
  float* const maxima = column_maxima(i);
  if (request_->block > 0) take_block_columns(sums, maxima);
  for (size_t j = 0; j < column_pending_.size(); ++j) column_pending_[j] += sums[j];
  std::fill_n(sums, columns, 0.0f);
  std::fill_n(maxima, columns, 0.0f);
  if (whole) take_in(column_pending_, column_totals_, fixed_scale_);
}

void PanelReduction::take_block_columns(const float* column_sums, const float* column_maxima) {
  for (size_t b = 0; b < block_sum_.size(); ++b) {
    const int64_t begin = task_->keys.begin + static_cast<int64_t>(b) * request_->block;
    const int64_t count = std::min(request_->block, task_->keys.end - begin);
    const float* sums = column_sums + begin;
    const float* maxima = column_maxima + begin;
    if (count % kFold == 0 && count <= 256) {
      add_even_block(sums, maxima, count, block_sum_[b], block_max_[b]);
      continue;
    }
    block_sum_[b] += sum_of(sums, count);
    block_max_[b] = std::max(block_max_[b], max_of(maxima, count));
  }
}

void PanelReduction::finish_block_row(int64_t end) {
  const int64_t position = first_position_ + end;
  if (position % request_->block != 0 && end != num_rows()) return;
  block_row_((position - 1) / request_->block, block_max_, block_sum_);
  std::fill(block_max_.begin(), block_max_.end(), 0.0f);
  std::fill(block_sum_.begin(), block_sum_.end(), 0.0);
}

void PanelReduction::add_to(std::span<int64_t> columns, std::span<int64_t> diagonals,
                            std::span<int64_t> offsets) const {
  for (size_t i = 0; i < columns.size(); ++i) columns[i] += column_totals_[i];
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += offset_totals_[i];
  if (diagonals.empty()) return;
  // The panel's first element is key 0 of its last row.
  const int64_t first = task_->problem->num_queries() - 1 - index_.back();
  for (size_t i = 0; i < diagonal_totals_.size(); ++i) {
    diagonals[static_cast<size_t>(first) + i] += diagonal_totals_[i];
  }
}

}  // namespace attnscope
