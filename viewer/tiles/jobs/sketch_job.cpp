#include "viewer/tiles/jobs/sketch_job.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/heads/head_sketch.h"
#include "core/problem/sampled_rows.h"
#include "core/reduce/head_metrics.h"

namespace attnscope {
namespace {

/// Rows on which keys are counted, as `stats` does it.
constexpr int64_t kCountedRows = 256;
/// The FLOP of a piece of an exact sketch: some 20 ms of one core.
constexpr double kSketchFlops = 4e9;

/// The completion that keeps the sketch with its head.
Completion keep(const std::shared_ptr<const HeadSketch>& sketch, MemoryReservation memory) {
  // std::function wants what can be copied.
  auto reserved = std::make_shared<MemoryReservation>(std::move(memory));
  return [sketch, reserved](HeadCache& head, TileStore&) {
    if (head.sketch != nullptr && head.sketch->exact && !sketch->exact) return false;
    head.sketch = sketch;
    head.sketch_memory = std::move(*reserved);
    return true;
  };
}

/// Weights of rows. Queries are not looked through beforehand, of which a sketch needs so few: what
/// the backend refuses may be a NaN, which is the better word for it.
const float* entries_of(WorkerScratch& scratch, const HeadId& id, std::span<const int64_t> rows,
                        std::span<RowNorm> norms) {
  const AttentionProblem& problem = scratch.problem();
  try {
    return scratch.entries(scratch.read(rows), norms, false, {0, problem.num_keys()},
                           Quantity::weights);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::value) problem.check_queries_finite(id.batch, id.head);
    throw;
  }
}

/// Entries of rows into the canvas. Throws Error(value) where q or k are not finite.
void draw_rows(WorkerScratch& scratch, const HeadId& id, std::span<const int64_t> rows,
               SketchCanvas& canvas) {
  const AttentionProblem& problem = scratch.problem();
  const IndexRange keys{0, problem.num_keys()};
  const bool divided = needs_norms(problem.score(), Quantity::weights);
  const auto step = static_cast<size_t>(scratch.rows_per_call(std::ssize(rows), keys.size(), true));
  std::vector<RowNorm> norms;
  for (size_t first = 0; first < rows.size(); first += step) {
    const auto part = rows.subspan(first, std::min(step, rows.size() - first));
    norms.assign(divided ? part.size() : 0, {});
    const float* row = entries_of(scratch, id, part, norms);
    for (const int64_t index : part) {
      const std::span<const float> weights(row, static_cast<size_t>(keys.size()));
      if (std::any_of(weights.begin(), weights.end(), [](float w) { return std::isnan(w); })) {
        problem.check_finite(id.batch, id.head);
        throw Error(ErrorCode::value, problem.name() + ": row " + std::to_string(index) +
                                          " has weights that are no numbers");
      }
      canvas.add(index, weights);
      row += keys.size();
    }
  }
}

class SampledSketchJob : public OnePieceJob {
 public:
  using OnePieceJob::OnePieceJob;
  bool needs_bound(const HeadCache&) const override { return false; }

 private:
  WorkItem piece(HeadCache& head, const JobTools&) override {
    return [problem = head.problem, id = head.id](WorkerScratch* scratch) {
      const SketchCells cells = SketchCells::of(problem->num_queries(), problem->num_keys());
      MemoryReservation memory = scratch->reserve(HeadSketch::bytes(cells), "a head of the atlas");
      return keep(std::make_shared<const HeadSketch>(sampled_sketch(*scratch, *problem, id)),
                  std::move(memory));
    };
  }
};

/// A pass over all rows on its way to an exact sketch.
struct SketchPass {
  SketchPass(const AttentionProblem& problem, const HeadId& id)
      : cells(SketchCells::of(problem.num_queries(), problem.num_keys())),
        share_rows(sampled_rows(problem.num_queries(), kCountedRows)),
        task{&problem, id.batch, id.head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}},
        request(metrics_request(problem, share_rows)),
        canvas(cells) {
    request.block = std::min(cells.height, cells.width);
  }

  const SketchCells cells;
  const std::vector<int64_t> share_rows;
  const HeadTask task;
  ReductionRequest request;
  MemoryReservation totals_memory, sketch_memory;
  int64_t next_row = 0, rows_done = 0;  ///< under the service's lock

  std::mutex mutex;  ///< of what follows
  HeadTotals totals;
  SketchCanvas canvas;
};

class ExactSketchJob : public MapJob {
 public:
  using MapJob::MapJob;

  bool done(const HeadCache& head) const override {
    return head.sketch != nullptr && head.sketch->exact;
  }
  int64_t pieces_left(const HeadCache& head) const override {
    if (done(head)) return 0;
    const int64_t rows_done = pass_ ? pass_->rows_done : 0;
    return ceil_div(head.geometry.rows - rows_done, panel_rows(head));
  }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    if (!pass_) {
      auto pass = std::make_shared<SketchPass>(*head.problem, head.id);
      pass->totals_memory =
          tools.reserve(HeadTotals::bytes(pass->task, pass->request), "the numbers of a head");
      pass->sketch_memory = tools.reserve(HeadSketch::bytes(pass->cells), "a head of the atlas");
      pass->totals = HeadTotals(pass->task, pass->request);
      pass_ = std::move(pass);
    }
    const int64_t all = head.geometry.rows;
    if (pass_->next_row == all) return std::nullopt;
    const IndexRange rows{pass_->next_row, std::min(all, pass_->next_row + panel_rows(head))};
    pass_->next_row = rows.end;
    return [pass = pass_, rows](WorkerScratch* scratch) { return add_panel(*scratch, pass, rows); };
  }

  void abandon(HeadCache&) override { pass_ = nullptr; }

 private:
  static int64_t panel_rows(const HeadCache& head) {
    const AttentionProblem& problem = *head.problem;
    const SketchCells cells = SketchCells::of(problem.num_queries(), problem.num_keys());
    ReductionRequest request;
    request.block = std::min(cells.height, cells.width);
    const int64_t multiple = PanelReduction::row_multiple(request);
    const int64_t wanted = piece_rows(problem, problem.num_keys(), kSketchFlops);
    return std::max<int64_t>(1, wanted / multiple) * multiple;
  }

  static Completion add_panel(WorkerScratch& scratch, const std::shared_ptr<SketchPass>& pass,
                              IndexRange rows) {
    const int64_t side = pass->request.block;
    const PanelReduction& panel =
        scratch.reduce(pass->task, rows, pass->request,
                       [&](int64_t row, std::span<const float> max, std::span<const double> sum) {
                         const std::lock_guard lock(pass->mutex);
                         pass->canvas.add_blocks(row * side, max, sum);
                       });
    const std::lock_guard lock(pass->mutex);
    pass->totals.add(pass->task, panel);
    return [pass, rows](HeadCache& head, TileStore& store) {
      pass->rows_done += rows.size();
      if (pass->rows_done < pass->cells.queries) return false;
      const HeadMetrics metrics =
          head_metrics(pass->totals, pass->task, pass->request, pass->cells.queries);
      return keep(std::make_shared<const HeadSketch>(pass->canvas.finish(metrics)),
                  std::move(pass->sketch_memory))(head, store);
    };
  }

  std::shared_ptr<SketchPass> pass_;
};

}  // namespace

HeadSketch sampled_sketch(WorkerScratch& scratch, const AttentionProblem& problem,
                          const HeadId& id) {
  const std::vector<int64_t> rows = sketch_rows(problem.num_queries());
  scratch.bind_to(scratch.bind(problem, id, static_cast<int64_t>(rows.size())));
  SketchCanvas canvas(SketchCells::of(problem.num_queries(), problem.num_keys()));
  draw_rows(scratch, id, rows, canvas);
  const ReductionRequest request = metrics_request(problem, rows);
  HeadTask task = scratch.whole_head();
  task.row_list = rows;
  const MemoryReservation meanwhile =
      scratch.reserve(HeadTotals::bytes(task, request), "the numbers of a head");
  HeadTotals totals(task, request);
  totals.add(task, scratch.reduce(task, {0, task.num_rows()}, request, {}));
  return canvas.finish(head_metrics(totals, task, request, problem.num_queries()));
}

HeadSketch sampled_line(WorkerScratch& scratch, const AttentionProblem& problem, const HeadId& id,
                        int64_t line) {
  const SketchCells cells = SketchCells::of(problem.num_queries(), problem.num_keys());
  std::vector<int64_t> rows = sketch_rows(problem.num_queries());
  std::erase_if(rows, [&](int64_t row) { return row / cells.height != line; });
  scratch.bind_to(scratch.bind(problem, id, static_cast<int64_t>(rows.size())));
  SketchCanvas canvas(cells);
  draw_rows(scratch, id, rows, canvas);
  return canvas.finish({});
}

std::shared_ptr<MapJob> make_sketch_job(const HeadId& id) {
  return std::make_shared<SampledSketchJob>(id);
}

std::shared_ptr<MapJob> make_exact_sketch_job(const HeadId& id) {
  return std::make_shared<ExactSketchJob>(id);
}

}  // namespace attnscope
