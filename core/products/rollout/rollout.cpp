#include "core/products/rollout/rollout.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace attnscope {
namespace {

constexpr double kUnits = 0x1p50;

/// Of a value that is not negative; a call of llround for each would take longer than the sums.
int64_t to_units(double value) {
  return static_cast<int64_t>(value * kUnits + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

double dot(const float* weights, const std::vector<double>& values) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  size_t j = 0;
  for (; j + kLanes <= values.size(); j += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += double{weights[j + l]} * values[j + l];
  }
  for (size_t l = 0; j < values.size(); ++j, ++l) lanes[l] += double{weights[j]} * values[j];
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

RolloutLayer::RolloutLayer(std::vector<double> influence, int64_t heads, RolloutDirection direction,
                           const TileRequest& request, int workers, MemoryBudget& budget)
    : influence_(std::move(influence)),
      heads_(heads),
      direction_(direction),
      request_(request),
      reservation_(budget.reserve(bytes(static_cast<int64_t>(influence_.size()), workers),
                                  "the influence of tokens")),
      sums_(influence_.size()) {
  assert(request.chunk_rows % kGroupRows == 0 && heads <= kMostHeads);
}

bool RolloutLayer::is_idle(IndexRange rows) const {
  return direction_ == RolloutDirection::to_inputs &&
         std::all_of(influence_.begin() + rows.begin, influence_.begin() + rows.end,
                     [](double value) { return value == 0; });
}

void RolloutLayer::consume(const Tile& tile) {
  // A row that is masked, but for its sink, keeps its influence.
  if (tile.chunks.front() == nullptr && tile.task->problem->sinks().is_none()) return;
  if (direction_ == RolloutDirection::to_inputs) {
    hand_back(tile);
  } else {
    hand_on(tile);
  }
}

double RolloutLayer::row_factor(const Tile& tile, int64_t r) const {
  const HeadTask& task = *tile.task;
  const double sink =
      task.problem->sinks().logit(task.batch, task.head, task.row_at(tile.rows.begin + r));
  if (!std::isfinite(sink)) return 1;
  const double lse = tile.norms[static_cast<size_t>(r)].lse();
  return 2 / (2 - std::min(std::exp(sink - lse), 1.0));
}

void RolloutLayer::hand_back(const Tile& tile) {
  const auto* weights = reinterpret_cast<const float*>(tile.chunks.front());
  std::vector<int64_t> tile_sums(sums_.size());
  std::vector<double> group(sums_.size());
  for (int64_t first = 0; first < tile.rows.size(); first += kGroupRows) {
    std::fill(group.begin(), group.end(), 0.0);
    for (int64_t r = first; r < std::min(first + kGroupRows, tile.rows.size()); ++r) {
      const auto token = static_cast<size_t>(tile.task->row_at(tile.rows.begin + r));
      const double factor = row_factor(tile, r), share = influence_[token] * factor;
      if (share == 0) continue;
      tile_sums[token] += to_units(influence_[token] * (factor - 1));
      if (weights == nullptr) continue;
      const float* row = weights + r * request_.chunk_cols;
      for (size_t j = 0; j < group.size(); ++j) group[j] += share * double{row[j]};
    }
    for (size_t j = 0; j < group.size(); ++j) tile_sums[j] += to_units(group[j]);
  }
  const std::lock_guard lock(mutex_);
  for (size_t j = 0; j < sums_.size(); ++j) sums_[j] += tile_sums[j];
}

void RolloutLayer::hand_on(const Tile& tile) {
  const auto* weights = reinterpret_cast<const float*>(tile.chunks.front());
  std::vector<int64_t> rows;
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const double factor = row_factor(tile, r);
    const double own = influence_[static_cast<size_t>(tile.task->row_at(tile.rows.begin + r))];
    const double map = weights == nullptr ? 0 : dot(weights + r * request_.chunk_cols, influence_);
    rows.push_back(to_units(factor * map + (factor - 1) * own));
  }
  const std::lock_guard lock(mutex_);
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    sums_[static_cast<size_t>(tile.task->row_at(tile.rows.begin + r))] +=
        rows[static_cast<size_t>(r)];
  }
}

std::vector<double> RolloutLayer::next() const {
  std::vector<double> result(influence_.size());
  const double unit = 1 / (kUnits * static_cast<double>(heads_));
  for (size_t j = 0; j < result.size(); ++j) {
    result[j] = 0.5 * (influence_[j] + static_cast<double>(sums_[j]) * unit);
  }
  return result;
}

}  // namespace attnscope
