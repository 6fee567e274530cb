#include "core/stream/streaming_engine.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <semaphore>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/stream/panel.h"
#include "core/stream/panel_queue.h"
#include "core/stream/panel_run.h"
#include "core/stream/progress_report.h"
#include "core/stream/value_panels.h"

namespace attnscope {
namespace {

/// The state that all workers of a run share.
struct Stream {
  std::span<const HeadTask> tasks;
  const TilePlan& plan;
  const TileRequest request;
  TileSink& sink;
  const StreamControl& control;
  ProgressReport& progress;
  std::counting_semaphore<>& turns;  ///< to compute
};

/// A turn to compute, which ends with it.
class ComputeTurn {
 public:
  explicit ComputeTurn(std::counting_semaphore<>& turns) : turns_(turns) { turns_.acquire(); }
  ~ComputeTurn() { turns_.release(); }
  ComputeTurn(const ComputeTurn&) = delete;
  ComputeTurn& operator=(const ComputeTurn&) = delete;

 private:
  std::counting_semaphore<>& turns_;
};

class TileWorker : public PanelWorker {
 public:
  TileWorker(const Stream& stream, const WorkerLayout& layout) : s_(stream), buffers_(layout) {}

  /// Computes the panel's tiles in buffers of its own and gives them to the sink.
  void run(const Panel& panel) override {
    const HeadTask& task = s_.tasks[static_cast<size_t>(panel.task)];
    if (!s_.request.entries) return run_norms(task, panel);
    if (s_.request.outputs) return run_outputs(task, panel);
    const int64_t chunks = ceil_div(task.keys.size(), s_.request.chunk_cols);
    queries_ = {};
    norms_ = known_norms(task, panel);
    for (int64_t first = 0; first < chunks; first += s_.plan.segment_chunks) {
      // The queue is closed by then: nobody misses the rest, and nobody takes the panel for done.
      if (s_.control.stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
      run_segment(task, panel, first, std::min(first + s_.plan.segment_chunks, chunks));
    }
  }

 private:
  /// The rows' norms where the task or its head brings them; nothing where they are computed.
  std::span<RowNorm> known_norms(const HeadTask& task, const Panel& panel) const {
    if (!needs_norms(task, s_.request)) return {};
    const auto all = panel.norms != nullptr ? panel.norms->norms() : task.known_norms;
    if (all.empty()) return {};
    const auto known =
        all.subspan(static_cast<size_t>(panel.rows.begin), static_cast<size_t>(panel.rows.size()));
    std::copy(known.begin(), known.end(), buffers_.norms());
    return {buffers_.norms(), known.size()};
  }

  void run_norms(const HeadTask& task, const Panel& panel) {
    const IndexRange cols{0, task.keys.size()};
    if (!is_skipped(panel, cols)) {
      read_queries(task, panel);
      norms_ = {buffers_.norms(), queries_.index.size()};
      {
        const ComputeTurn turn(s_.turns);
        panel.head->row_norms(queries_, norms_, buffers_.workspace());
      }
      s_.sink.consume({&task, panel.task, panel.rows, cols, {}, norms_, true});
    }
    s_.progress.add_tile();
  }

  /// The panel's outputs, in a single chunk.
  void run_outputs(const HeadTask& task, const Panel& panel) {
    const IndexRange cols{0, task.problem->v().width()};
    if (!is_skipped(panel, cols)) {
      read_queries(task, panel);
      norms_ = {};
      if (needs_norms(task, s_.request)) norms_ = {buffers_.norms(), queries_.index.size()};
      buffers_.pointers()[0] = buffers_.tiles();
      const std::span<std::byte* const> chunk(buffers_.pointers(), 1);
      {
        const ComputeTurn turn(s_.turns);
        panel.head->outputs(queries_, norms_, panel.values->panels(),
                            {reinterpret_cast<float*>(chunk[0]), s_.request.chunk_cols},
                            buffers_.workspace());
        clear_padding(panel.rows.size(), cols.size(), chunk);
      }
      const auto norms = s_.request.norms ? norms_ : std::span<RowNorm>();
      s_.sink.consume({&task, panel.task, panel.rows, cols, chunk, norms, true});
    }
    s_.progress.add_tile();
  }

  /// Column chunks [first, last) of the panel.
  void run_segment(const HeadTask& task, const Panel& panel, int64_t first, int64_t last) {
    const IndexRange keys = chunk_keys(task, s_.request, first, last);
    const IndexRange cols{keys.begin - task.keys.begin, keys.end - task.keys.begin};
    if (!is_skipped(panel, cols)) {
      const auto chunks = place_chunks(task, panel.rows, first, last);
      {
        const ComputeTurn turn(s_.turns);
        compute(task, panel, keys, chunks);
        clear_padding(panel.rows.size(), keys.size(), chunks);
      }
      const auto norms = s_.request.norms && first == 0 ? norms_ : std::span<RowNorm>();
      s_.sink.consume({&task, panel.task, panel.rows, cols, chunks, norms, first == 0});
    }
    s_.progress.add_tile();
  }

  bool is_skipped(const Panel& panel, IndexRange cols) const {
    return s_.control.skip && s_.control.skip(panel.task, panel.rows, cols);
  }

  /// Gives every chunk that has entries its place, one after the other.
  std::span<std::byte* const> place_chunks(const HeadTask& task, IndexRange rows, int64_t first,
                                           int64_t last) {
    std::byte* place = buffers_.tiles();
    std::byte** pointers = buffers_.pointers();
    for (int64_t c = first; c < last; ++c) {
      const bool empty = skips_empty_chunks(task, s_.request) &&
                         is_masked_out(task, rows, chunk_keys(task, s_.request, c, c + 1));
      pointers[c - first] = empty ? nullptr : place;
      if (!empty) place += chunk_bytes();
    }
    assert(place - buffers_.tiles() <= s_.plan.active_chunks * chunk_bytes());
    return {pointers, static_cast<size_t>(last - first)};
  }

  void compute(const HeadTask& task, const Panel& panel, IndexRange keys,
               std::span<std::byte* const> chunks) {
    const bool normalised = needs_norms(task, s_.request);
    const bool all_empty =
        std::all_of(chunks.begin(), chunks.end(), [](const std::byte* c) { return c == nullptr; });
    if (all_empty && (!normalised || !norms_.empty())) return;
    if (queries_.index.empty()) read_queries(task, panel);
    const EmitTarget target{chunks, s_.request.chunk_cols, s_.request.chunk_cols,
                            s_.request.encoding};
    const std::span<std::byte> workspace = buffers_.workspace();
    if (normalised && norms_.empty()) {
      norms_ = {buffers_.norms(), queries_.index.size()};
      if (s_.plan.one_product) {
        return panel.head->emit_panel(queries_, norms_, keys, target, workspace);
      }
      panel.head->row_norms(queries_, norms_, workspace);
    }
    if (all_empty) return;
    panel.head->emit(queries_, norms_, keys, s_.request.quantity, target, workspace);
  }

  void read_queries(const HeadTask& task, const Panel& panel) {
    queries_ = read_query_rows(task, *panel.head, panel.rows, buffers_.index(), buffers_.queries());
  }

  /// Chunks are whole; what the task does not cover of them is zero.
  void clear_padding(int64_t rows, int64_t cols, std::span<std::byte* const> chunks) const {
    const TileRequest& r = s_.request;
    const int64_t row_bytes = r.chunk_cols * encoding_bytes(r.encoding);
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i] == nullptr) continue;
      const int64_t used_cols =
          std::min(cols - static_cast<int64_t>(i) * r.chunk_cols, r.chunk_cols);
      const int64_t used_bytes = used_cols * encoding_bytes(r.encoding);
      for (int64_t row = 0; row < rows && used_bytes < row_bytes; ++row) {
        std::memset(chunks[i] + row * row_bytes + used_bytes, 0,
                    static_cast<size_t>(row_bytes - used_bytes));
      }
      std::memset(chunks[i] + rows * row_bytes, 0,
                  static_cast<size_t>((r.chunk_rows - rows) * row_bytes));
    }
  }

  int64_t chunk_bytes() const {
    return s_.request.chunk_rows * s_.request.chunk_cols * encoding_bytes(s_.request.encoding);
  }

  const Stream& s_;
  const WorkerBuffers buffers_;
  // Of the panel at hand; empty until they are needed.
  QueryBlock queries_;
  std::span<RowNorm> norms_;
};

}  // namespace

bool StreamingEngine::run(std::span<const HeadTask> tasks, const TilePlan& plan, TileSink& sink,
                          const StreamControl& control) {
  const TileRequest request = sink.request();
  const WorkerLayout layout =
      layout_worker(tasks, request, backend_,
                    {plan.panel_rows, plan.segment_chunks, plan.active_chunks, plan.one_product});
  assert(layout.reserved() == plan.bytes_per_worker && "the plan was made for another stream");
  const MemoryReservation reserved = budget_.reserve(plan.bytes_total, "the tiles");
  ProgressReport progress(control.progress, plan.tiles);
  std::counting_semaphore<> turns(plan.workers);
  const Stream stream{tasks, plan, request, sink, control, progress, turns};
  sink.begin(tasks, plan.threads());

  PanelQueue queue(tasks, backend_,
                   {.panel_rows = plan.panel_rows,
                    .bound_heads = plan.bound_heads,
                    .workers = plan.threads(),
                    .with_values = request.outputs,
                    .norm_rows = plan.norm_rows,
                    .in_order = request.in_order,
                    .next_task = control.next_task});
  run_panels(queue, {.workers = plan.threads(),
                     .stop = control.stop,
                     .make_worker = [&] { return std::make_unique<TileWorker>(stream, layout); },
                     .abort = [&] { sink.abort(); }});
  if (!queue.is_used_up()) return false;
  assert((control.next_task || progress.complete()) && "every tile is counted");
  progress.finish();
  sink.end();
  return true;
}

}  // namespace attnscope
