#include "core/streaming_engine.h"

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "core/tile_geometry.h"

namespace attnscope {
namespace {

/// Page-aligned bytes, allocated once and recycled.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(buffer_bytes(bytes)) {
    if (bytes_ == 0) return;
    data_.reset(
        static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, static_cast<size_t>(bytes_))));
    if (!data_) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  std::span<std::byte> span() const { return {data_.get(), static_cast<size_t>(bytes_)}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  int64_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

/// The first failure of a run, and whether it is to stop. Thread-safe.
class RunState {
 public:
  void fail(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    stop_.request_stop();
  }
  std::stop_source& stop() { return stop_; }
  bool stopped() const { return stop_.stop_requested(); }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::stop_source stop_;
};

/// Binds heads in task order on a thread of its own, at most `window` of them alive at once, and
/// frees each as soon as its last panel is done.
class HeadSupply {
 public:
  HeadSupply(std::span<const HeadTask> tasks, const TileRequest& request,
             const TileBackend& backend, int64_t window, RunState& state)
      : tasks_(tasks), backend_(backend), window_(window), state_(state), heads_(tasks.size()) {
    for (const HeadTask& task : tasks) panels_left_.push_back(num_panels(task, request));
    binder_ = std::jthread([this] { bind_all(); });
  }
  ~HeadSupply() {
    state_.stop().request_stop();
    binder_.join();
  }

  /// Waits for the head; null when the run is stopped. Valid until its last panel_done().
  const BoundHead* acquire(int64_t task) {
    std::unique_lock lock(mutex_);
    const auto& head = heads_[static_cast<size_t>(task)];
    changed_.wait(lock, state_.stop().get_token(), [&] { return head != nullptr; });
    return state_.stopped() ? nullptr : head.get();
  }

  void panel_done(int64_t task) {
    std::unique_ptr<BoundHead> finished;
    const std::lock_guard lock(mutex_);
    if (--panels_left_[static_cast<size_t>(task)] > 0) return;
    // Freed before the binder may go on, so that never more than `window` exist.
    finished = std::move(heads_[static_cast<size_t>(task)]);
    finished.reset();
    ++released_;
    changed_.notify_all();
  }

 private:
  void bind_all() {
    try {
      for (size_t i = 0; i < tasks_.size(); ++i) {
        {
          std::unique_lock lock(mutex_);
          const auto room = [&] { return static_cast<int64_t>(i) < released_ + window_; };
          if (!changed_.wait(lock, state_.stop().get_token(), room)) return;
        }
        const HeadTask& task = tasks_[i];
        auto head = backend_.bind(*task.problem, task.batch, task.head);
        const std::lock_guard lock(mutex_);
        heads_[i] = std::move(head);
        changed_.notify_all();
      }
    } catch (...) {
      state_.fail(std::current_exception());
    }
  }

  std::span<const HeadTask> tasks_;
  const TileBackend& backend_;
  const int64_t window_;
  RunState& state_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<BoundHead>> heads_;
  std::vector<int64_t> panels_left_;
  int64_t released_ = 0;
  std::jthread binder_;
};

/// Hands out panels in order. Thread-safe.
class PanelQueue {
 public:
  struct Item {
    int64_t task = 0;
    int64_t panel = 0;
  };
  PanelQueue(std::span<const HeadTask> tasks, const TileRequest& request)
      : tasks_(tasks), request_(request) {}

  std::optional<Item> next() {
    const std::lock_guard lock(mutex_);
    while (at_.task < static_cast<int64_t>(tasks_.size())) {
      if (at_.panel < num_panels(tasks_[static_cast<size_t>(at_.task)], request_)) {
        return Item{at_.task, at_.panel++};
      }
      at_ = {at_.task + 1, 0};
    }
    return std::nullopt;
  }

 private:
  std::span<const HeadTask> tasks_;
  const TileRequest& request_;
  std::mutex mutex_;
  Item at_;
};

/// Counts finished tiles and tells the caller, now and then, from one thread at a time.
class ProgressReport {
 public:
  ProgressReport(const StreamControl& control, int64_t total)
      : callback_(control.progress), progress_{0, total} {}

  bool complete() {
    const std::lock_guard lock(mutex_);
    return progress_.tiles_done == progress_.tiles_total;
  }

  void tile_done() {
    const std::lock_guard lock(mutex_);
    ++progress_.tiles_done;
    if (!callback_) return;
    const auto now = Clock::now();
    const bool last = progress_.tiles_done == progress_.tiles_total;
    if (!last && now - reported_ < std::chrono::milliseconds(50)) return;
    reported_ = now;
    callback_(progress_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::function<void(const StreamProgress&)>& callback_;
  std::mutex mutex_;
  StreamProgress progress_;
  Clock::time_point reported_{};
};

/// What all workers of a run share.
struct Run {
  std::span<const HeadTask> tasks;
  const TilePlan& plan;
  const TileRequest request;
  TileSink& sink;
  const StreamControl& control;
  RunState& state;
  HeadSupply& heads;
  PanelQueue& panels;
  ProgressReport& progress;
};

/// One worker: its buffers, and what it does with a panel.
class Worker {
 public:
  Worker(const Run& run, const TileBackend& backend) : run_(run) {
    int64_t workspace = 0;
    int64_t query_bytes = 0;
    int64_t col_chunks = 0;
    for (const HeadTask& task : run.tasks) {
      const bool stash = run.plan.one_product && needs_norms(task, run.request);
      workspace = std::max(workspace, backend.workspace_bytes(*task.problem, run.plan.panel_rows,
                                                              task.keys.size(), stash));
      query_bytes = std::max(query_bytes, run.plan.panel_rows * task.problem->q().row_bytes());
      col_chunks = std::max(col_chunks, num_col_chunks(task, run.request));
    }
    workspace_.emplace(workspace);
    queries_.emplace(query_bytes);
    chunk_bytes_ =
        run.request.chunk_rows * run.request.chunk_cols * encoding_bytes(run.request.encoding);
    tile_.emplace(run.plan.active_chunks * chunk_bytes_);
    norms_.resize(static_cast<size_t>(run.plan.panel_rows));
    index_.resize(static_cast<size_t>(run.plan.panel_rows));
    chunks_.reserve(static_cast<size_t>(col_chunks));
  }

  void work() {
    while (!run_.state.stopped()) {
      const auto item = run_.panels.next();
      if (!item) return;
      const BoundHead* head = run_.heads.acquire(item->task);
      if (head == nullptr) return;
      compute_panel(*head, *item);
      run_.heads.panel_done(item->task);
    }
  }

 private:
  void compute_panel(const BoundHead& head, PanelQueue::Item item) {
    const HeadTask& task = run_.tasks[static_cast<size_t>(item.task)];
    const IndexRange rows = panel_rows(task, run_.request, item.panel);
    const int64_t chunks = num_col_chunks(task, run_.request);
    const int64_t step = std::max<int64_t>(1, run_.plan.segment_chunks);
    bool have_norms = false;
    bool loaded = false;
    for (int64_t c = 0; c == 0 || c < chunks; c += step) {
      if (run_.state.stopped()) return;
      const IndexRange segment{c, std::min(c + step, chunks)};
      const IndexRange cols{segment.begin * run_.request.chunk_cols,
                            std::min(segment.end * run_.request.chunk_cols, task.keys.size())};
      if (run_.control.skip && run_.control.skip(item.task, rows, cols)) {
        run_.progress.tile_done();
        continue;
      }
      if (!loaded) load_queries(task, rows);
      loaded = true;
      compute_segment(head, task, rows, segment, have_norms);
      const size_t count = static_cast<size_t>(rows.size());
      const bool norms = needs_norms(task, run_.request);
      run_.sink.consume(
          {&task, item.task, rows, cols, chunks_,
           norms ? std::span<const RowNorm>(norms_.data(), count) : std::span<const RowNorm>(),
           c == 0});
      run_.progress.tile_done();
    }
  }

  void load_queries(const HeadTask& task, IndexRange rows) {
    const HeadTensor& q = task.problem->q();
    for (int64_t i = 0; i < rows.size(); ++i) {
      index_[static_cast<size_t>(i)] = task.row_at(rows.begin + i);
    }
    // A list of rows is read in runs of neighbours.
    for (int64_t i = 0; i < rows.size();) {
      int64_t end = i + 1;
      while (end < rows.size() &&
             index_[static_cast<size_t>(end)] == index_[static_cast<size_t>(end - 1)] + 1) {
        ++end;
      }
      const int64_t first = index_[static_cast<size_t>(i)];
      q.read_rows(task.batch, task.head, {first, first + end - i},
                  queries_->data() + i * q.row_bytes());
      i = end;
    }
  }

  /// Points chunks_ at buffers for the segment's chunks that are not empty, and zeroes the padding
  /// of those that lie at an edge.
  void place_chunks(const HeadTask& task, IndexRange rows, IndexRange segment) {
    chunks_.clear();
    int64_t used = 0;
    for (int64_t c = segment.begin; c < segment.end; ++c) {
      if (!chunk_is_active(task, run_.request, rows, c)) {
        chunks_.push_back(nullptr);
        continue;
      }
      assert(used < run_.plan.active_chunks);
      std::byte* chunk = tile_->data() + used++ * chunk_bytes_;
      chunks_.push_back(chunk);
      const bool whole = rows.size() == run_.request.chunk_rows &&
                         chunk_keys(task, run_.request, c).size() == run_.request.chunk_cols;
      if (!whole) std::memset(chunk, 0, static_cast<size_t>(chunk_bytes_));
    }
  }

  void compute_segment(const BoundHead& head, const HeadTask& task, IndexRange rows,
                       IndexRange segment, bool& have_norms) {
    const auto count = static_cast<size_t>(rows.size());
    const QueryBlock queries{queries_->data(), {index_.data(), count}};
    const std::span<RowNorm> norms(norms_.data(), count);
    const bool norms_needed = needs_norms(task, run_.request);
    place_chunks(task, rows, segment);
    const EmitTarget target{chunks_, run_.request.chunk_cols, run_.request.chunk_cols,
                            run_.request.encoding};
    const IndexRange keys{
        chunk_keys(task, run_.request, segment.begin).begin,
        segment.empty() ? task.keys.begin : chunk_keys(task, run_.request, segment.end - 1).end};
    if (norms_needed && run_.request.entries && run_.plan.one_product) {
      return head.emit_panel(queries, norms, keys, target, workspace_->span());
    }
    if (norms_needed && !have_norms) {
      head.row_norms(queries, norms, workspace_->span());
      have_norms = true;
    }
    if (!run_.request.entries) return;
    head.emit(queries, norms_needed ? std::span<const RowNorm>(norms) : std::span<const RowNorm>(),
              keys, run_.request.quantity, target, workspace_->span());
  }

  const Run& run_;
  int64_t chunk_bytes_ = 0;
  std::optional<Buffer> workspace_, queries_, tile_;
  std::vector<RowNorm> norms_;
  std::vector<int64_t> index_;
  std::vector<std::byte*> chunks_;
};

}  // namespace

bool StreamingEngine::run(std::span<const HeadTask> tasks, const TilePlan& plan, TileSink& sink,
                          const StreamControl& control) {
  const MemoryReservation reservation = budget_.reserve(plan.bytes_total, "the tile stream");
  RunState state;
  const std::stop_callback forward(control.stop, [&state] { state.stop().request_stop(); });
  sink.begin(tasks, plan.workers);
  ProgressReport progress(control, plan.tiles);
  const TileRequest request = sink.request();
  PanelQueue panels(tasks, request);
  {
    HeadSupply heads(tasks, request, backend_, plan.bound_heads, state);
    const Run shared{tasks, plan, request, sink, control, state, heads, panels, progress};
    std::vector<std::jthread> workers;
    for (int i = 0; i < plan.workers; ++i) {
      workers.emplace_back([&] {
        try {
          Worker(shared, backend_).work();
        } catch (...) {
          state.fail(std::current_exception());
        }
      });
    }
    for (std::jthread& worker : workers) worker.join();
  }
  state.rethrow();
  // A stop that came after the last tile stops nothing.
  if (!progress.complete()) return false;
  sink.end();
  return true;
}

}  // namespace attnscope
