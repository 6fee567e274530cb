#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/reduce/panel_reduction.h"
#include "kernels/common/workspace.h"
#include "kernels/cuda/host/head/lane.h"
#include "kernels/cuda/kernel/reduce_args.h"

namespace attnscope::cuda {

/// The results that a call has gathered on the host, in pieces of its workspace.
struct ReduceResults {
  std::vector<RowReduction> rows;
  std::span<double> masses;  ///< [rows, segments]
  std::span<int64_t> columns, diagonals, offsets;
  std::span<float> share_rows;  ///< [kShareRows, num_keys]
  /// Some rows of blocks: integers and bits as the device has them, and what they stand for.
  std::span<int64_t> block_integers;
  std::span<int32_t> block_bits;
  std::span<float> block_max;
  std::span<double> block_sum;
};

/// Translates a panel's request for the kernels. Borrows problem and panel.
class ReducePlan {
 public:
  /// Rows whose weights are brought to the host at a time, to count the keys of a share.
  static constexpr int64_t kShareRows = 8;

  ReducePlan(const AttentionProblem& problem, const PanelReduction& panel);

  /// Bytes of results at most, for panels of up to `rows` rows.
  static int64_t host_bytes(const AttentionProblem& problem, int64_t rows);

  bool wants_moments() const;
  bool wants_row_sums() const { return request_.any_rows(); }
  int64_t run_count() const { return static_cast<int64_t>(runs_.size()); }
  int64_t segments() const { return panel_.segments().count(); }
  /// Key tiles in which anything is wanted.
  IndexRange key_tiles() const;

  ReduceResults take_results(Workspace& workspace) const;
  /// Facts of the panel's rows [first, first + count), padded to `padded` entries.
  std::vector<RowFacts> row_facts(int64_t first, int64_t count, int64_t padded) const;
  /// Uploads what all steps share and clears the sums that they add to.
  void load(Lane& lane, ReduceArgs& args) const;
  /// Keeps the results of a step's rows. `totals` are empty where no row sums are wanted, norms and
  /// entropies where the score has none.
  void keep_rows(int64_t first, std::span<const RowTotals> totals, std::span<const RowNorm> norms,
                 std::span<const double> entropy, ReduceResults& results) const;
  /// The sums over rows, once all steps are queued.
  void download(Lane& lane, const ReduceArgs& args, ReduceResults& results) const;

  /// Weights of some rows of the panel, [rows, num_keys] float32: fetch(rows of the panel, to).
  using FetchWeights = std::function<void(std::span<const int64_t> rows, std::span<float> to)>;
  void count_shares(const FetchWeights& fetch, ReduceResults& results) const;

  /// Into the panel; rows of blocks come from the device as they are given.
  void give(Lane& lane, const ReduceArgs& args, ReduceResults& results,
            PanelReduction& panel) const;

 private:
  GridPlace place_of(const TokenGrid& grid, int64_t index) const;
  int64_t diagonal_count() const;
  int64_t offset_count() const;
  int64_t block_batch() const;

  const AttentionProblem& problem_;
  const PanelReduction& panel_;
  const ReductionRequest& request_;
  const int64_t key_tiles_;
  std::vector<KeyRun> runs_;
  std::vector<int32_t> tile_runs_;
};

}  // namespace attnscope::cuda
