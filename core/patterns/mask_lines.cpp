#include "core/patterns/mask_lines.h"

#include <algorithm>
#include <numeric>

#include "core/mask/mask_runs.h"

namespace attnscope {
namespace {

class LinesTerm : public RunsTerm {
 public:
  LinesTerm(std::vector<int64_t> columns, std::vector<int64_t> diagonals)
      : columns_(std::move(columns)), diagonals_(std::move(diagonals)) {}

  std::string describe() const override {
    return "lines:" + std::to_string(columns_.size()) + "+" + std::to_string(diagonals_.size());
  }
  void check_shape(int64_t, int64_t, int64_t, int64_t) const override {}

 protected:
  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    auto column = std::lower_bound(columns_.begin(), columns_.end(), keys.begin);
    auto diagonal = std::lower_bound(diagonals_.begin(), diagonals_.end(), keys.begin - query);
    while (true) {
      int64_t key = keys.end;
      if (column != columns_.end()) key = std::min(key, *column);
      if (diagonal != diagonals_.end()) key = std::min(key, *diagonal + query);
      if (key >= keys.end) return;
      if (column != columns_.end() && *column == key) ++column;
      if (diagonal != diagonals_.end() && *diagonal + query == key) ++diagonal;
      if (!runs.empty() && runs.back().end == key && runs.back().begin >= keys.begin) {
        ++runs.back().end;
      } else {
        runs.push_back({key, key + 1});
      }
    }
  }

 private:
  const std::vector<int64_t> columns_, diagonals_;  // ascending
};

std::vector<int64_t> largest(const std::vector<int64_t>& sums, int64_t count) {
  std::vector<int64_t> order(sums.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto sum = [&](int64_t i) { return sums[static_cast<size_t>(i)]; };
  const auto past = order.begin() + std::min(count, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), past, order.end(), [&](int64_t a, int64_t b) {
    return sum(a) != sum(b) ? sum(a) > sum(b) : a < b;
  });
  order.erase(past, order.end());
  std::erase_if(order, [&](int64_t i) { return sum(i) == 0; });
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

Mask line_mask(std::vector<int64_t> columns, std::vector<int64_t> diagonals) {
  std::sort(columns.begin(), columns.end());
  std::sort(diagonals.begin(), diagonals.end());
  return Mask::term(std::make_shared<LinesTerm>(std::move(columns), std::move(diagonals)));
}

LineCollector::LineCollector(const AttentionProblem& problem, const TileRequest& request,
                             MemoryBudget& budget)
    : request_(request),
      num_queries_(problem.num_queries()),
      reservation_(budget.reserve(bytes(problem), "the sums of columns and diagonals")),
      columns_(static_cast<size_t>(problem.num_keys())),
      diagonals_(static_cast<size_t>(problem.num_queries() + problem.num_keys() - 1)) {}

int64_t LineCollector::bytes(const AttentionProblem& problem) {
  // The sums, and their ranking.
  return (problem.num_queries() + 2 * problem.num_keys()) * 16;
}

void LineCollector::consume(const Tile& tile) {
  if (tile.chunks.front() == nullptr) return;
  const std::lock_guard lock(mutex_);
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const auto* row = reinterpret_cast<const float*>(tile.chunks.front()) + r * request_.chunk_cols;
    int64_t* diagonals =
        diagonals_.data() + num_queries_ - 1 - tile.task->row_at(tile.rows.begin + r);
    for (size_t j = 0; j < columns_.size(); ++j) {
      const auto mass = static_cast<int64_t>(double{row[j]} * 0x1p45);
      columns_[j] += mass;
      diagonals[j] += mass;
    }
  }
}

std::vector<int64_t> LineCollector::top_columns(int64_t count) const {
  return largest(columns_, count);
}

std::vector<int64_t> LineCollector::top_diagonals(int64_t count) const {
  std::vector<int64_t> chosen = largest(diagonals_, count);
  for (int64_t& diagonal : chosen) diagonal -= num_queries_ - 1;
  return chosen;
}

}  // namespace attnscope
