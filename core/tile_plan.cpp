#include "core/tile_plan.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/memory_budget.h"
#include "core/tile_geometry.h"

namespace attnscope {
namespace {

/// Two products take nearly twice one product's time; the exponentials are shared.
constexpr double kTwoProductCost = 1.9;

/// What the tasks ask of any plan.
struct Demand {
  int64_t rows = 0;           ///< most rows of a panel
  int64_t col_chunks = 0;     ///< most column chunks of a panel
  int64_t active_chunks = 0;  ///< most that are not empty in one panel
  int64_t panels = 0;
  int64_t entries = 0;      ///< in chunks that are not empty
  double norm_entries = 0;  ///< that a pass over all keys computes
  bool norms = false;       ///< norms are needed before entries, or wanted alone
  int64_t head_dim = 0;
  TileBackend::BindCost bind;
};

void add_task(Demand& demand, const HeadTask& task, const TileRequest& request,
              const TileBackend& backend) {
  const AttentionProblem& problem = *task.problem;
  const int64_t chunks = num_col_chunks(task, request);
  demand.col_chunks = std::max(demand.col_chunks, chunks);
  demand.head_dim = std::max(demand.head_dim, problem.head_dim());
  const auto bind = backend.bind_cost(problem);
  demand.bind.resident = std::max(demand.bind.resident, bind.resident);
  demand.bind.transient = std::max(demand.bind.transient, bind.transient);
  const bool norms = needs_norms(task, request);
  demand.norms |= norms;
  const int64_t entries_before = demand.entries;
  for (int64_t p = 0; p < num_panels(task, request); ++p) {
    const IndexRange rows = panel_rows(task, request, p);
    demand.rows = std::max(demand.rows, rows.size());
    ++demand.panels;
    int64_t active = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      if (!chunk_is_active(task, request, rows, c)) continue;
      ++active;
      demand.entries += rows.size() * chunk_keys(task, request, c).size();
    }
    demand.active_chunks = std::max(demand.active_chunks, active);
  }
  if (!norms) return;
  const bool all_keys = request.entries && task.keys.size() == problem.num_keys();
  demand.norm_entries +=
      all_keys ? static_cast<double>(demand.entries - entries_before)
               : static_cast<double>(task.num_rows()) * static_cast<double>(problem.num_keys());
}

/// Bytes of one worker that holds `chunks` column chunks at once.
int64_t worker_bytes(std::span<const HeadTask> tasks, const TileRequest& request,
                     const TileBackend& backend, const Demand& demand, int64_t chunks,
                     bool one_product) {
  int64_t workspace = 0;
  int64_t query_bytes = 0;
  const AttentionProblem* last = nullptr;
  for (const HeadTask& task : tasks) {
    if (task.problem == last) continue;
    last = task.problem;
    const bool stash = one_product && needs_norms(task, request);
    workspace = std::max(
        workspace, backend.workspace_bytes(*task.problem, demand.rows, task.keys.size(), stash));
    query_bytes = std::max(query_bytes, demand.rows * task.problem->q().row_bytes());
  }
  const int64_t chunk_bytes =
      request.chunk_rows * request.chunk_cols * encoding_bytes(request.encoding);
  const auto norm_bytes = static_cast<int64_t>(sizeof(RowNorm) + sizeof(int64_t)) * demand.rows;
  const auto pointer_bytes = static_cast<int64_t>(sizeof(std::byte*)) * demand.col_chunks;
  return buffer_bytes(chunks * chunk_bytes) + buffer_bytes(query_bytes) + buffer_bytes(workspace) +
         buffer_bytes(norm_bytes + pointer_bytes);
}

/// Chooses among plans; every candidate is complete but for the counts of the stream.
class Planner {
 public:
  Planner(std::span<const HeadTask> tasks, const TileRequest& request, const TileBackend& backend,
          int64_t budget, int max_workers)
      : tasks_(tasks), request_(request), backend_(backend), budget_(budget) {
    for (const HeadTask& task : tasks) add_task(demand_, task, request, backend);
    const int workers = max_workers > 0 ? max_workers : backend.workers();
    max_workers_ = static_cast<int>(std::clamp<int64_t>(demand_.panels, 1, workers));
  }

  TilePlan choose() {
    double best_score = 0;
    TilePlan best;
    for (int workers = max_workers_; workers >= 1; --workers) {
      for (const bool one_product : {true, false}) {
        if (!one_product && !two_products_differ()) continue;
        const double score = workers / (one_product ? 1.0 : kTwoProductCost);
        if (score <= best_score) continue;
        if (const auto plan = fit(workers, one_product)) {
          best = *plan;
          best_score = score;
        }
      }
    }
    if (best_score == 0) refuse();
    count(best);
    return best;
  }

 private:
  /// Whether a second product buys anything: it lets columns be cut.
  bool two_products_differ() const { return request_.entries && demand_.norms; }

  /// Columns can be held in pieces where no norms are needed first, or with two products.
  bool may_cut(bool one_product) const {
    return request_.entries && (!one_product || !demand_.norms);
  }

  int64_t bytes(int workers, bool one_product, int64_t chunks, int64_t bound_heads) const {
    return bound_heads * buffer_bytes(demand_.bind.resident) +
           buffer_bytes(demand_.bind.transient) +
           workers * worker_bytes(tasks_, request_, backend_, demand_, chunks, one_product);
  }

  std::optional<TilePlan> fit(int workers, bool one_product) const {
    int64_t chunks = demand_.active_chunks;
    if (bytes(workers, one_product, chunks, 1) > budget_) {
      if (!may_cut(one_product)) return std::nullopt;
      // The most chunks that fit: bytes grow with chunks.
      int64_t low = 0;
      int64_t high = chunks;
      while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (bytes(workers, one_product, middle, 1) <= budget_ ? low : high) = middle;
      }
      if (low == 0) return std::nullopt;
      chunks = low;
    }
    TilePlan plan;
    plan.workers = workers;
    plan.panel_rows = demand_.rows;
    plan.one_product = one_product;
    plan.active_chunks = chunks;
    // Where all active chunks fit at once there is one segment, empty chunks included.
    plan.segment_chunks = chunks == demand_.active_chunks ? demand_.col_chunks : chunks;
    const bool prefetch = tasks_.size() > 1 && bytes(workers, one_product, chunks, 2) <= budget_;
    plan.bound_heads = prefetch ? 2 : 1;
    plan.bytes_per_worker = worker_bytes(tasks_, request_, backend_, demand_, chunks, one_product);
    plan.bytes_total = bytes(workers, one_product, chunks, plan.bound_heads);
    plan.bytes_bound = plan.bytes_total - workers * plan.bytes_per_worker;
    return plan;
  }

  [[noreturn]] void refuse() const {
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (const bool one_product : {true, false}) {
      if (!one_product && !two_products_differ()) continue;
      const int64_t chunks = may_cut(one_product) ? std::min<int64_t>(1, demand_.active_chunks)
                                                  : demand_.active_chunks;
      smallest = std::min(smallest, bytes(1, one_product, chunks, 1));
    }
    throw Error(ErrorCode::resource, "a memory budget of " + format_bytes(budget_) + " (" +
                                         std::to_string(budget_) + " bytes) is too small for " +
                                         tasks_.front().problem->name() +
                                         ": the smallest possible is " + format_bytes(smallest) +
                                         " (" + std::to_string(smallest) + " bytes)");
  }

  void count(TilePlan& plan) const {
    for (const HeadTask& task : tasks_) {
      const int64_t chunks = num_col_chunks(task, request_);
      const int64_t segments =
          chunks == 0 ? 1 : ceil_div(chunks, std::max<int64_t>(1, plan.segment_chunks));
      plan.tiles += num_panels(task, request_) * segments;
    }
    plan.entries = request_.entries ? demand_.entries : static_cast<int64_t>(demand_.norm_entries);
    const double entries = static_cast<double>(plan.entries);
    const double products = !demand_.norms      ? entries
                            : !request_.entries ? demand_.norm_entries
                            : plan.one_product  ? demand_.norm_entries
                                                : demand_.norm_entries + entries;
    plan.flops = 2.0 * static_cast<double>(demand_.head_dim) * products;
  }

  std::span<const HeadTask> tasks_;
  const TileRequest& request_;
  const TileBackend& backend_;
  int64_t budget_;
  Demand demand_;
  int max_workers_ = 1;
};

}  // namespace

TilePlan plan_tiles(std::span<const HeadTask> tasks, const TileRequest& request,
                    const TileBackend& backend, int64_t budget_bytes, int max_workers) {
  assert(!tasks.empty());
  return Planner(tasks, request, backend, budget_bytes, max_workers).choose();
}

std::string TilePlan::describe() const {
  std::string text = std::to_string(workers) + (workers == 1 ? " worker, " : " workers, ");
  text += "panels of " + std::to_string(panel_rows) + " rows, ";
  text += one_product ? "one product" : "two products";
  if (bound_heads > 1) text += ", next head prefetched";
  return text + ", " + format_bytes(bytes_total) + " of memory";
}

}  // namespace attnscope
