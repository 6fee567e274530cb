#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/products/key_runs.h"
#include "core/products/norm_store.h"
#include "core/products/softmax_domain.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_plan.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// Whose attention to which keys is wanted: all rows of one head.
struct ReverseTask {
  const AttentionProblem* problem = nullptr;
  const TensorSource* mask = nullptr;  ///< of the problem, where it has a tensor mask
  int64_t batch = 0;
  int64_t head = 0;
  std::vector<int64_t> keys;    ///< ascending
  std::vector<double> factors;  ///< [keys]
  /// The sequence that the domain is of; null: the problem's key tokens.
  const TokenGrid* domain_keys = nullptr;
};

/// Columns of the map: Σ over chosen keys j of factor_j · P[i, j] for every query row i, P's row i
/// renormalised over a domain of keys. Streams, never holding more than a few columns: the row
/// norms come from a store or from a pass over the domain's keys (the softmax over a part of the
/// keys is the same call under a mask), then only the chosen columns are computed. Results do not
/// depend on memory and threads; with one key, factor 1 and domain all they are the export's bits.
class ReverseQuery {
 public:
  struct Settings {
    SoftmaxDomain domain = SoftmaxDomain::all;
    int threads = 0;  ///< 0: the backend's own number
  };
  /// Borrows everything; tasks must not be empty. Throws Error(usage) where a chosen key lies
  /// outside the domain. Reserves results and working space from `budget`.
  ReverseQuery(std::span<const ReverseTask> tasks, const Settings& settings,
               const TileBackend& backend, MemoryBudget& budget);

  struct Control {
    std::stop_token stop;
    /// How much of steps() is done; from one thread at a time.
    std::function<void(double steps)> progress;
  };
  /// One value a query row for each task. Norms are looked for in `store` and kept there; it may be
  /// null. Throws Error(interrupted) when it was stopped.
  std::vector<std::vector<float>> run(NormStore* store, const Control& control);

  /// How many passes over all rows of a head there are: norms, for each task and part of the
  /// domain.
  int64_t steps() const { return static_cast<int64_t>(parts_.size()); }
  /// Parts whose norms came from the store in run(), and those that have norms at all.
  int64_t kept() const { return kept_; }
  int64_t normed() const { return normed_; }
  /// A failure of the store to keep norms, or to give ones that could be believed, one line; empty
  /// where there was none.
  const std::string& store_problem() const { return store_problem_; }

  /// Hands over the reservation of the results, to be held for as long as they are kept.
  MemoryReservation take_reservation() { return std::move(reservation_); }

  /// The stream of the passes over rows, for forecasts; needs no run(). plan() throws BudgetError
  /// where it, or a stream of the columns, does not fit the budget.
  const std::vector<HeadTask>& norm_tasks() const { return norm_tasks_; }
  TileRequest norm_request() const;
  TilePlan plan() const;

 private:
  /// The keys of a task that share a domain, and so their rows' norms.
  struct Part {
    size_t task = 0;
    const AttentionProblem* problem = nullptr;  ///< the task's, masked to the domain
    IndexRange domain;
    size_t first = 0, count = 0;  ///< of the task's keys
    /// Rows are divided by their sum over the domain as they come: for scores without norms.
    bool divide = false;
  };
  void add_parts(size_t task);
  void add_part(size_t task, size_t first, size_t count, IndexRange domain);
  void reserve();
  std::vector<RowNorm> norms_of(const Part& part, NormStore* store, const Control& control);
  std::vector<KeyRun> runs_of(const Part& part) const;
  HeadTask column_task(const Part& part, const KeyRun& run, std::span<const RowNorm> norms) const;
  void add_columns(const Part& part, std::span<const RowNorm> norms, std::span<double> sums,
                   const Control& control);
  /// `control.progress` gets the share that is done.
  void stream(const HeadTask& task, TileSink& sink, const Control& control);

  const std::span<const ReverseTask> tasks_;
  const Settings settings_;
  const TileBackend& backend_;
  MemoryBudget& budget_;
  MemoryReservation reservation_;
  std::deque<AttentionProblem> problems_;
  /// By call and first key of the domain.
  std::map<std::pair<const AttentionProblem*, int64_t>, const AttentionProblem*> masked_;
  std::vector<Part> parts_;
  std::vector<HeadTask> norm_tasks_;
  int64_t kept_ = 0, normed_ = 0;
  std::string store_problem_;
};

}  // namespace attnscope
