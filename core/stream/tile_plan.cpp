#include "core/stream/tile_plan.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/budget_error.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/bound_norms.h"
#include "core/stream/device_facet.h"
#include "core/stream/few_rows.h"
#include "core/stream/panel.h"
#include "core/stream/panel_queue.h"
#include "core/stream/value_panels.h"

namespace attnscope {
namespace {

/// Keys at a time that are asked of the mask, however many a chunk has: backends ask it block by
/// block.
constexpr int64_t kMaskKeys = 512;

/// Segment lengths worth trying: those that cut `chunks` column chunks into equal segments.
/// Descending, from all chunks to one.
std::vector<int64_t> segment_lengths(int64_t chunks) {
  std::vector<int64_t> lengths;
  for (int64_t length = chunks; length > 0;) {
    lengths.push_back(length);
    // The next number of segments that makes them shorter.
    length = length == 1 ? 0 : ceil_div(chunks, ceil_div(chunks, length - 1));
  }
  return lengths;
}

/// The chunks, entries and operations that the masks leave to the stream.
struct StreamCount {
  std::vector<int64_t> most_active;  ///< for each segment length: non-empty chunks of a segment
  int64_t entries = 0;               ///< wanted, in chunks that are not empty
  int64_t norm_entries = 0;          ///< that go into row norms
  double entry_flops = 0, norm_flops = 0;
};

void count_chunks(const HeadTask& task, const TileRequest& request, IndexRange rows,
                  std::span<const int64_t> lengths, StreamCount& count,
                  std::vector<int64_t>& active_before) {
  const int64_t chunks = ceil_div(task.keys.size(), request.chunk_cols);
  active_before.assign(1, 0);
  for (int64_t c = 0; c < chunks; ++c) {
    const IndexRange keys = chunk_keys(task, request, c, c + 1);
    const bool active = !skips_empty_chunks(task, request) || !is_masked_out(task, rows, keys);
    active_before.push_back(active_before.back() + (active ? 1 : 0));
    if (active) add_area(count.entries, rows.size(), keys.size());
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int64_t begin = 0; begin < chunks; begin += lengths[i]) {
      const int64_t end = std::min(begin + lengths[i], chunks);
      const int64_t active =
          active_before[static_cast<size_t>(end)] - active_before[static_cast<size_t>(begin)];
      count.most_active[i] = std::max(count.most_active[i], active);
    }
  }
}

/// The most memory that a bound head takes away from that of the tiles.
TileBackend::BindCost dearest_head(std::span<const HeadTask> tasks, const TileRequest& request,
                                   const TileBackend& backend) {
  TileBackend::BindCost most;
  const HeadTask* previous = nullptr;
  for (const HeadTask& task : tasks) {
    const bool seen = previous != nullptr && previous->problem == task.problem &&
                      previous->num_rows() == task.num_rows();
    previous = &task;
    if (seen) continue;
    TileBackend::BindCost cost = bind_cost_for_rows(backend, *task.problem, task.num_rows());
    if (request.outputs) {
      const auto both = checked_add(cost.resident, BoundValues::bytes(*task.problem));
      if (!both) throw Error(ErrorCode::resource, "the heads are too large for any memory");
      cost.resident = *both;
      cost.transient = std::max(cost.transient, BoundValues::transient_bytes(*task.problem));
    }
    most.resident = std::max(most.resident, cost.resident);
    most.transient = std::max(most.transient, cost.transient);
  }
  return most;
}

/// Rows whose norms the backend computes best at once; 0: as many as one likes.
int64_t best_norm_rows(std::span<const HeadTask> tasks, const TileBackend& backend) {
  const DeviceFacet* const device = backend.device();
  if (device == nullptr) return 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  const AttentionProblem* previous = nullptr;
  for (const HeadTask& task : tasks) {
    if (task.problem == previous) continue;
    previous = task.problem;
    most = std::min(most, device->norm_panel_rows(*task.problem));
  }
  return most;
}

/// The stream, looked at once; plans are then priced without looking at the masks again.
class Planner {
 public:
  Planner(std::span<const HeadTask> tasks, const TileRequest& request, const TileBackend& backend)
      : tasks_(tasks),
        request_(request),
        head_(dearest_head(tasks, request, backend)),
        norm_rows_(best_norm_rows(tasks, backend)) {
    // Chunks have to be whole; norms alone come as suits the backend.
    const int64_t panel_rows = request.entries || norm_rows_ == 0 ? request.chunk_rows : norm_rows_;
    int64_t chunks = 0;
    for (const HeadTask& task : tasks) {
      assert(task.num_rows() > 0 && !task.keys.empty());
      assert(task.keys.begin >= 0 && task.keys.end <= task.problem->num_keys());
      most_rows_ = std::max(most_rows_, std::min(task.num_rows(), panel_rows));
      panels_ += ceil_div(task.num_rows(), panel_rows);
      if (request.entries) chunks = std::max(chunks, chunks_of(task));
      any_norms_ |= computes_norms(task, request);
      assert(!request.outputs || (task.problem->v() && task.known_norms.empty() &&
                                  task.keys == IndexRange{0, task.problem->num_keys()} &&
                                  request.chunk_cols >= task.problem->v().width()));
      assert(task.known_norms.empty() ||
             static_cast<int64_t>(task.known_norms.size()) == task.num_rows());
    }
    lengths_ = segment_lengths(chunks);
    request.outputs ? count_outputs() : count_entries();
    find_norms_ahead(backend);
    list_shapes(backend);
  }

  /// The first plan that fits, or nothing; then `smallest` is the bytes of the smallest one.
  std::optional<TilePlan> choose(int64_t budget, int64_t max_workers, int waiting_workers,
                                 int64_t& smallest) const {
    smallest = std::numeric_limits<int64_t>::max();
    for (int64_t workers = std::min(max_workers, panels_); workers > 0; --workers) {
      for (const Shape& shape : shapes_) {
        const HeadsInFlight wanted = heads_in_flight(shape.panels, workers);
        for (int64_t heads = wanted.most; heads >= wanted.least; --heads) {
          TilePlan plan = shape.plan;
          plan.workers = static_cast<int>(workers);
          plan.bound_heads = heads;
          if (!price(plan)) continue;
          if (plan.bytes_total <= budget) {
            return finished(with_waiting(plan, waiting_workers, budget));
          }
          smallest = std::min(smallest, plan.bytes_total);
        }
      }
    }
    return std::nullopt;
  }

 private:
  /// A way to cut panels, without workers and heads.
  struct Shape {
    TilePlan plan;
    PanelCounts panels;
  };

  int64_t chunks_of(const HeadTask& task) const {
    return request_.outputs ? 1 : ceil_div(task.keys.size(), request_.chunk_cols);
  }

  /// All entries that the masks leave are computed once, and multiplied with q and v.
  void count_outputs() {
    count_.most_active.assign(1, 1);
    for (const HeadTask& task : tasks_) {
      const int64_t before = count_.entries;
      for (int64_t begin = 0; begin < task.num_rows(); begin += request_.chunk_rows) {
        const IndexRange panel{begin, std::min(begin + request_.chunk_rows, task.num_rows())};
        add_area(count_.entries, unmasked_entries(task, panel, kMaskKeys), 1);
      }
      const auto multiplications =
          static_cast<double>(task.problem->head_dim() + task.problem->v().width());
      double& flops = any_norms_ ? count_.norm_flops : count_.entry_flops;
      flops += 2 * multiplications * static_cast<double>(count_.entries - before);
    }
  }

  void count_entries() {
    count_.most_active.assign(lengths_.size(), 0);
    std::vector<int64_t> scratch;
    for (const HeadTask& task : tasks_) {
      const int64_t rows = task.num_rows();
      const StreamCount before = count_;
      for (int64_t begin = 0; begin < rows; begin += request_.chunk_rows) {
        const IndexRange panel{begin, std::min(begin + request_.chunk_rows, rows)};
        if (request_.entries) count_chunks(task, request_, panel, lengths_, count_, scratch);
        if (computes_norms(task, request_)) {
          add_area(count_.norm_entries, unmasked_entries(task, panel, kMaskKeys), 1);
        }
      }
      const double entry_flops = 2 * static_cast<double>(task.problem->head_dim());
      count_.entry_flops += entry_flops * static_cast<double>(count_.entries - before.entries);
      count_.norm_flops +=
          entry_flops * static_cast<double>(count_.norm_entries - before.norm_entries);
    }
  }

  /// Norms come before entries where there are more panels than the norms' own, and no mask, of
  /// whose tiles the host would have to tell twice.
  void find_norms_ahead(const TileBackend& backend) {
    norms_ahead_ = request_.entries && !request_.outputs && any_norms_ && norm_rows_ > most_rows_;
    for (const HeadTask& task : tasks_) {
      norms_ahead_ = norms_ahead_ && task.known_norms.empty() && needs_norms(task, request_) &&
                     task.problem->mask().is_none() && task.num_rows() > request_.chunk_rows;
    }
    if (!norms_ahead_) return;
    for (const HeadTask& task : tasks_) {
      ahead_.resident = std::max(ahead_.resident, BoundNorms::bytes(task));
      ahead_.transient =
          std::max(ahead_.transient, BoundNorms::transient_bytes(task, backend, norm_rows_));
    }
  }

  /// All ways to cut panels, the fastest first.
  void list_shapes(const TileBackend& backend) {
    const auto add = [&](int64_t rows, int64_t segment, int64_t active, bool one_product,
                         bool norms_ahead = false) {
      TilePlan plan;
      plan.norm_rows = norms_ahead ? norm_rows_ : 0;
      plan.panel_rows = rows;
      plan.segment_chunks = segment;
      plan.active_chunks = active;
      plan.one_product = one_product;
      plan.bytes_per_worker =
          layout_worker(tasks_, request_, backend, {rows, segment, active, one_product}).reserved();
      shapes_.push_back({plan, count_panels(tasks_, rows)});
    };
    if (!request_.entries) {
      // No chunks have to be whole, so panels may be as low as one row.
      for (int64_t rows = most_rows_; rows > 0; rows /= 2) add(rows, 0, 0, true);
      return;
    }
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const int64_t active = count_.most_active[i];
      if (norms_ahead_) add(most_rows_, lengths_[i], active, false, true);
      // One product needs the whole row at once, unless nothing is divided by the row's norm.
      if (i == 0 || !any_norms_) add(most_rows_, lengths_[i], active, true);
      if (any_norms_ && !request_.outputs) add(most_rows_, lengths_[i], active, false);
    }
  }

  /// As many more threads as there is memory and work for.
  TilePlan with_waiting(const TilePlan& plan, int most, int64_t budget) const {
    const auto idle = static_cast<int>(std::min<int64_t>(most, panels_ - plan.workers));
    for (int waiting = idle; waiting > 0; --waiting) {
      TilePlan more = plan;
      more.waiting_workers = waiting;
      if (price(more) && more.bytes_total <= budget) return more;
    }
    return plan;
  }

  /// Fills in the bytes; false where they overflow.
  bool price(TilePlan& plan) const {
    const TileBackend::BindCost more = plan.norm_rows > 0 ? ahead_ : TileBackend::BindCost();
    const auto head = checked_add(head_.resident, more.resident);
    const auto meanwhile = checked_add(head_.transient, more.transient);
    if (!head || !meanwhile) return false;
    const auto resident = checked_mul(plan.bound_heads, *head);
    const auto binding =
        checked_mul(std::min<int64_t>(plan.threads(), plan.bound_heads), *meanwhile);
    const auto bound = resident && binding ? checked_add(*resident, *binding) : std::nullopt;
    const auto workers = checked_mul(plan.threads(), plan.bytes_per_worker);
    const auto total = bound && workers ? checked_add(*bound, *workers) : std::nullopt;
    if (!total) return false;
    plan.bytes_bound = *bound;
    plan.bytes_total = *total;
    return true;
  }

  TilePlan finished(TilePlan plan) const {
    plan.entries = request_.entries ? count_.entries : count_.norm_entries;
    plan.flops = count_.norm_flops;
    // One product gives norms and entries alike.
    if (!any_norms_ || !plan.one_product) plan.flops += count_.entry_flops;
    for (const HeadTask& task : tasks_) {
      const int64_t panels = ceil_div(task.num_rows(), plan.panel_rows);
      const int64_t segments =
          request_.entries ? ceil_div(chunks_of(task), plan.segment_chunks) : 1;
      plan.tiles += panels * segments;
    }
    return plan;
  }

  const std::span<const HeadTask> tasks_;
  const TileRequest request_;
  const TileBackend::BindCost head_;
  const int64_t norm_rows_;      ///< of the norms that the backend computes best at once
  bool norms_ahead_ = false;     ///< whether they may come before the entries
  TileBackend::BindCost ahead_;  ///< what that takes beside the head
  int64_t most_rows_ = 0;
  int64_t panels_ = 0;
  bool any_norms_ = false;
  std::vector<int64_t> lengths_;
  StreamCount count_;
  std::vector<Shape> shapes_;
};

}  // namespace

std::string TilePlan::describe() const {
  const auto count = [](int64_t n, const char* one) {
    return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
  };
  std::string text = count(workers, "worker");
  if (waiting_workers > 0) text += " and " + std::to_string(waiting_workers) + " at the disk";
  text += ", panels of " + count(panel_rows, "row");
  if (segment_chunks > 0) {
    text += " x " + count(segment_chunks, "chunk");
    if (active_chunks < segment_chunks) {
      text += " (at most " + std::to_string(active_chunks) + " not masked)";
    }
  }
  if (norm_rows > 0) {
    text += ", norms before entries, ";
  } else {
    text += one_product ? ", one product, " : ", two products, ";
  }
  return text + count(bound_heads, "bound head") + ", " + format_bytes(bytes_total);
}

TilePlan plan_tiles(std::span<const HeadTask> tasks, const TileRequest& request,
                    const TileBackend& backend, const MemoryRoom& room, int max_workers,
                    int waiting_workers) {
  assert(!tasks.empty() && request.chunk_rows > 0 && request.chunk_cols > 0);
  const int workers = std::max(1, max_workers > 0 ? max_workers : backend.workers());
  int64_t smallest = 0;
  const auto plan =
      Planner(tasks, request, backend).choose(room.bytes, workers, waiting_workers, smallest);
  if (plan) return *plan;
  if (smallest == std::numeric_limits<int64_t>::max()) {
    throw Error(ErrorCode::resource, "the heads are too large for any memory");
  }
  throw BudgetError(room, smallest);
}

}  // namespace attnscope
