#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/row_mean.h"
#include "core/products/softmax_domain.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// A TileSink that averages the chosen rows of each task, after their domain is applied. Rows are
/// averaged as RowMean does, so that the result does not depend on threads. Masked rows count as
/// zeros.
class RowCollector : public TileSink {
 public:
  /// Reserves the results (float32, keys a task) and the sums under way in at most `workers`
  /// threads from `budget`. `domain_keys`: the sequence that each task's domain is of, borrowed;
  /// empty: each problem's key tokens.
  RowCollector(std::span<const HeadTask> tasks, SoftmaxDomain domain, int workers,
               MemoryBudget& budget, std::vector<const TokenGrid*> domain_keys = {});

  TileRequest request() const override;
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override {}

  /// Mean row over all keys of task i: [num_keys]. It can be taken once.
  std::vector<float> take_mean(int64_t task) {
    return std::move(means_[static_cast<size_t>(task)]);
  }
  /// Hands over the reservation of the results, to be held for as long as they are kept.
  MemoryReservation take_reservation() { return std::move(reservation_); }
  /// ln of the normaliser of the task's row (before any domain); NaN where the task has several
  /// rows, and for sigmoid.
  double lse(int64_t task) const { return lse_[static_cast<size_t>(task)]; }

 private:
  SoftmaxDomain domain_;
  std::vector<const TokenGrid*> domain_keys_;
  int64_t max_keys_ = 0;
  int64_t max_rows_ = 0;
  MemoryReservation reservation_;
  std::mutex mutex_;
  std::vector<RowMean> sums_;  ///< of tasks under way
  std::vector<std::vector<float>> means_;
  std::vector<double> lse_;
};

}  // namespace attnscope
