#include "core/products/row_collector.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {

RowCollector::RowCollector(std::span<const HeadTask> tasks, SoftmaxDomain domain, int workers,
                           MemoryBudget& budget, std::vector<const TokenGrid*> domain_keys)
    : domain_(domain), domain_keys_(std::move(domain_keys)) {
  int64_t result_bytes = 0;
  int64_t pending_bytes = 0;
  for (const HeadTask& task : tasks) {
    const int64_t keys = task.problem->num_keys();
    const int64_t groups = RowMean::groups(task.num_rows());
    max_keys_ = std::max(max_keys_, keys);
    max_rows_ = std::max(max_rows_, task.num_rows());
    result_bytes += keys * static_cast<int64_t>(sizeof(float));
    pending_bytes = std::max(pending_bytes, groups * keys * static_cast<int64_t>(sizeof(double)));
  }
  // Every worker can be in another head, and one more can have begun; a worker has a row and its
  // sums of its own.
  const int64_t worker_bytes = max_keys_ * static_cast<int64_t>(sizeof(float) + sizeof(double));
  const auto pending = checked_mul(pending_bytes, workers + 1);
  const auto working = checked_mul(worker_bytes, workers);
  const auto under_way = pending && working ? checked_add(*pending, *working) : std::nullopt;
  const auto total = under_way ? checked_add(*under_way, result_bytes) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the rows of the query are too large");
  reservation_ = budget.reserve(*total, "the rows of the query");
  means_.resize(tasks.size());
  lse_.assign(tasks.size(), std::numeric_limits<double>::quiet_NaN());
}

TileRequest RowCollector::request() const {
  TileRequest request;
  request.chunk_rows = std::min(RowMean::kGroupRows, max_rows_);
  request.chunk_cols = max_keys_;
  return request;
}

void RowCollector::begin(std::span<const HeadTask> tasks, int) {
  for (const HeadTask& task : tasks) sums_.emplace_back(task.num_rows());
}

void RowCollector::consume(const Tile& tile) {
  const auto keys = static_cast<size_t>(tile.task->problem->num_keys());
  RowSums group(tile.task->problem->num_keys(), Quantity::weights);
  const TokenGrid& domain_keys = domain_keys_.empty()
                                     ? tile.task->problem->key_tokens()
                                     : *domain_keys_[static_cast<size_t>(tile.task_index)];
  std::vector<float> row;
  for (int64_t r = 0; tile.chunks.front() != nullptr && r < tile.rows.size(); ++r) {
    const auto* values = reinterpret_cast<const float*>(tile.chunks.front()) + r * max_keys_;
    if (domain_ == SoftmaxDomain::all) {
      group.add({values, keys});
      continue;
    }
    row.assign(values, values + keys);
    apply_domain(domain_, domain_keys, row);
    group.add(row);
  }
  const std::lock_guard lock(mutex_);
  const auto task = static_cast<size_t>(tile.task_index);
  if (tile.task->num_rows() == 1 && !tile.norms.empty()) {
    lse_[task] = tile.norms.front().lse();
  }
  RowMean& sums = sums_[task];
  sums.add(tile.rows.begin / RowMean::kGroupRows, std::move(group));
  if (sums.complete()) means_[task] = sums.take();
}

}  // namespace attnscope
