#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "cli/bench/bench_options.h"
#include "cli/bench/bench_report.h"
#include "cli/common/console.h"
#include "core/base/memory_budget.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/streaming_engine.h"

namespace attnscope {

/// The backend, options and budget that benchmark runs share. Borrows all but the token.
struct BenchMeans {
  const BenchOptions& options;
  const Console& console;
  const TileBackend& backend;
  MemoryBudget& budget;
  const Ceilings* ceilings = nullptr;  ///< null: there are no floors
  std::string folder;                  ///< for exports
  std::stop_token stop;
};

/// The passes over one head that are timed, as the program makes them. Each throws
/// Error(interrupted) when it is stopped, and what the pass throws.
class BenchRuns {
 public:
  explicit BenchRuns(const BenchMeans& means) : m_(means) {}

  /// The rows' norms; by so many threads, 0: by those that the command runs with.
  BenchResult norms(const std::string& name, const AttentionProblem& problem, int threads = 0);
  /// Norms and weights, in tiles that nobody keeps.
  BenchResult weights(const std::string& name, const AttentionProblem& problem);
  /// The weights of one query, its norm included.
  BenchResult row(const AttentionProblem& problem);
  /// All numbers of `attnscope stats`.
  BenchResult metrics(const AttentionProblem& problem);
  /// One reduction to blocks, as the window's first levels and pooled exports are made.
  BenchResult pyramid(const AttentionProblem& problem);
  /// One tile whose rows' norms are known already, in one call.
  BenchResult tile(const AttentionProblem& problem);
  /// Weights to a closed file; `sync`: to one that is durable.
  BenchResult exported(const std::shared_ptr<const AttentionProblem>& problem, bool sync);

 private:
  BenchResult stream_task(const std::string& name, const HeadTask& task, const TileRequest& request,
                          int threads);
  BenchResult reduce(const std::string& name, const AttentionProblem& problem,
                     const ReductionRequest& request);
  double floor_seconds(double flops, double entries) const;

  const BenchMeans m_;
};

}  // namespace attnscope
