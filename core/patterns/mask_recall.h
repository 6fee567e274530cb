#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/patterns/picked_rows.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The entries and weights that one mask M keeps of one row of weights P.
struct RowRecall {
  int64_t kept = 0;             ///< entries of the row that M keeps
  int64_t effective = 0;        ///< of them, those that the call's own mask keeps too
  double recall = 0;            ///< Σ P over the entries that M keeps
  double oracle = 0;            ///< sum of the `kept` largest P (detail only)
  double effective_oracle = 0;  ///< sum of the `effective` largest P (detail only)
  double forced = 0;            ///< Σ P over blocks that M keeps whatever their scores are
  double error = 0;             ///< ‖O_M − O‖² (values only)
  double product = 0;           ///< O_M · O (values only)
  double length = 0;            ///< ‖O_M‖² (values only)
  double divergence = 0;        ///< JS(P‖P_M) in bits (detail only), where terms make P_M
};

/// A TileSink that measures what masks keep of one head, row by row; the call's own mask shapes P.
/// Sums are float32 over 256 keys at most and double across them in index order, so that results
/// depend neither on memory nor on threads. Every row writes to places of its own.
class MaskRecall : public TileSink {
 public:
  struct Wanted {
    bool oracle = false;       ///< RowRecall::oracle, effective_oracle and divergence
    bool values = false;       ///< RowRecall::error, product and length; the problem must have V
    bool best_blocks = false;  ///< best_block_recall(); the task must have all rows
  };

  /// `masks` and the task's rows are borrowed. Reserves results and the buffers of at most
  /// `workers` threads.
  MaskRecall(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
             const TileRequest& request, int workers, MemoryBudget& budget);
  /// The bytes that the constructor will reserve, without those of picked blocks.
  static int64_t bytes(const HeadTask& task, size_t masks, Wanted wanted, int64_t tile_rows,
                       int workers);
  /// With them.
  static int64_t bytes(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
                       int64_t tile_rows, int workers);

  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override;
  void end() override {}

  const HeadTask& task() const { return task_; }
  const Mask& mask(size_t number) const { return masks_[number]; }
  /// One entry a row of the task.
  std::span<const RowRecall> scores(size_t mask) const {
    return {scores_.data() + static_cast<int64_t>(mask) * num_rows_,
            static_cast<size_t>(num_rows_)};
  }
  /// The best recall that picking as many blocks in each row of blocks could reach; nothing where
  /// it was not wanted, or the mask is not made of picked blocks.
  std::optional<double> best_block_recall(size_t mask) const;
  /// ‖O‖² of each row (values only).
  std::span<const double> output_norms() const { return norms_; }
  /// True where the call's own mask leaves nothing of the row.
  bool is_masked(int64_t row) const { return masked_[static_cast<size_t>(row)] != 0; }

 private:
  class Worker;
  const HeadTask task_;
  const std::span<const Mask> masks_;
  const Wanted wanted_;
  const TileRequest request_;
  const int64_t num_rows_;
  MemoryReservation reservation_;
  std::vector<PickedGroup> groups_;
  std::vector<RowRecall> scores_;  ///< [mask][row]
  std::vector<double> norms_;
  std::vector<uint8_t> masked_;
};

}  // namespace attnscope
