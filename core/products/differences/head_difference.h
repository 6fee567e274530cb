#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/differences/map_difference.h"
#include "core/products/differences/pair_stream.h"
#include "core/stream/stream_control.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Two heads whose maps are compared, row by row: the same rows of both, over all keys.
struct HeadPair {
  HeadTask a, b;
};

/// Throws Error(usage), one line with both sizes, where the maps of two calls are not of one size,
/// or their scores are not the same function.
void check_comparable(const AttentionProblem& a, const AttentionProblem& b);

/// As many workers and rows as the bytes allow, `max_workers` at most (0: the backend's number).
/// Throws Error(resource) naming the smallest budget that would do.
DifferencePlan plan_difference(const HeadPair& pair, const TileBackend& backend,
                               const MemoryRoom& room, int max_workers = 0);

/// The differences of all rows of the pair, in their order; nothing where it was stopped. q and k
/// must be finite. Results depend neither on the plan nor on who computes what. Reserves
/// plan.bytes. Throws what the backend throws.
std::optional<std::vector<RowDifference>> compare_heads(const HeadPair& pair,
                                                        const DifferencePlan& plan,
                                                        const TileBackend& backend,
                                                        MemoryBudget& budget,
                                                        const StreamControl& control = {});

/// A row of the sequence and how far it is from the other map's.
struct RankedRow {
  int64_t row = 0;
  double divergence = 0;
};

/// The numbers that tell two heads apart, over all rows or a sample of them.
struct HeadDifference {
  int64_t rows = 0, rows_of = 0;  ///< that were compared, that there are
  int64_t masked_rows = 0;        ///< of them, that have no weight in one of the maps or in both
  double mean_abs = 0;            ///< |A − B| over the entries of the rows
  /// ½·Σ_j |A − B|, mean over the rows that were compared as a whole; nothing without any.
  std::optional<double> total_variation;
  int64_t entries = 0, entries_of = 0;  ///< that were compared; those of the rows
  double max_abs = 0;
  int64_t max_row = 0, max_key = 0;  ///< where |A − B| is largest
  /// Over the rows that have weight in both maps; nothing where none has, or the score is no
  /// distribution.
  std::optional<double> divergence_mean, divergence_max;
  int64_t divergence_row = 0;
  /// Of the rows that are not all 0 in one of the maps; nothing where there is none.
  std::optional<double> cosine_mean;
  /// Entropy of A − entropy of B in nats, mean over the rows that have a divergence.
  std::optional<double> entropy_change;
  /// Of A's LSE − B's; nothing where there is no LSE.
  std::optional<double> lse_mean, lse_max_abs;
  int64_t lse_row = 0;
  std::vector<RankedRow> top;  ///< of the largest divergence, the first row first among equals
};

/// The maps and queries of the rows whose differences are summed up.
struct ComparedRows {
  int64_t rows_of = 0;  ///< that the maps have
  int64_t keys = 0;     ///< of a row
  /// True where rows are distributions, so that those without a divergence are masked where they
  /// were compared as a whole.
  bool normalised = true;
  bool weights = true;                    ///< logits have no variation
  std::span<const int64_t> queries = {};  ///< of each row; empty: those from 0 on
  int64_t first_key = 0;                  ///< of RowDifference::max_key
  bool sinks = false;                     ///< which have a part of each row's variation
  int64_t query_at(int64_t i) const {
    return queries.empty() ? i : queries[static_cast<size_t>(i)];
  }
};
/// Of rows in their order. `top`: rows that are listed at most.
HeadDifference summarise_rows(const ComparedRows& of, std::span<const RowDifference> rows,
                              int64_t top);
/// Of the pair's rows in their order. `top`: rows that are listed at most.
HeadDifference summarise_rows(const HeadPair& pair, std::span<const RowDifference> rows,
                              int64_t top);

/// The rows (places in `rows`) by their divergence, the largest first; those without one are left
/// out.
std::vector<int64_t> ranked_rows(std::span<const double> divergence, size_t most);

}  // namespace attnscope
