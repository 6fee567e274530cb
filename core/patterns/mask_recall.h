#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The entries and weights that one mask M keeps of one row of weights P.
struct RowRecall {
  int64_t kept = 0;             ///< entries of the row that M keeps
  int64_t effective = 0;        ///< of them, those that the call's own mask keeps too
  double recall = 0;            ///< Σ P over the entries that M keeps
  double oracle = 0;            ///< sum of the `kept` largest P (detail only)
  double effective_oracle = 0;  ///< sum of the `effective` largest P (detail only)
  double error = 0;             ///< ‖O_M − O‖² (values only)
};

/// A TileSink that measures what masks keep of one head, row by row; the call's own mask shapes P.
/// Sums are float32 over 256 keys at most and double across them in index order, so that results
/// depend neither on memory nor on threads. Every row writes to places of its own.
class MaskRecall : public TileSink {
 public:
  struct Wanted {
    bool oracle = false;  ///< RowRecall::oracle and effective_oracle
    bool values = false;  ///< RowRecall::error; the problem must have V
  };

  /// `masks` are borrowed. Reserves results and the buffers of at most `workers` threads.
  MaskRecall(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
             const TileRequest& request, int workers, MemoryBudget& budget);
  /// The bytes that the constructor will reserve.
  static int64_t bytes(const HeadTask& task, size_t masks, Wanted wanted, int64_t tile_rows,
                       int workers);

  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  /// One entry a row of the task.
  std::span<const RowRecall> scores(size_t mask) const {
    return {scores_.data() + static_cast<int64_t>(mask) * num_rows_,
            static_cast<size_t>(num_rows_)};
  }
  /// ‖O‖² of each row (values only).
  std::span<const double> output_norms() const { return norms_; }
  /// True where the call's own mask leaves nothing of the row.
  bool is_masked(int64_t row) const { return masked_[static_cast<size_t>(row)] != 0; }

 private:
  class Worker;
  const std::span<const Mask> masks_;
  const Wanted wanted_;
  const TileRequest request_;
  const int64_t num_rows_;
  MemoryReservation reservation_;
  std::vector<RowRecall> scores_;  ///< [mask][row]
  std::vector<double> norms_;
  std::vector<uint8_t> masked_;
};

}  // namespace attnscope
