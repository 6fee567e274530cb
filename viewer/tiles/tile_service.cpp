#include "viewer/tiles/tile_service.h"

#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "viewer/tiles/norm_cache.h"
#include "viewer/tiles/thread_priority.h"
#include "viewer/tiles/tile_scheduler.h"

namespace attnscope {
namespace {

/// AttentionProblem::check_finite stays below it.
constexpr int64_t kCheckBytes = int64_t{2} << 20;
/// A worker's buffers should not take more than this share of the memory, all workers together.
constexpr int64_t kBufferShare = 3;

}  // namespace

class TileService::Impl {
 public:
  Impl(std::vector<MapCall> calls, const TileBackend& backend, const Settings& settings,
       std::function<void()> wake)
      : backend_(backend),
        workers_(settings.threads > 0 ? settings.threads : backend.workers()),
        buffer_bytes_(settings.memory / kBufferShare / workers_),
        wake_(std::move(wake)),
        scheduler_(std::move(calls), settings.memory),
        probe_scratch_(backend, buffer_bytes_, reserve_unlocked()),
        keeper_(
            settings.cache_folders, backend.name(), reserve_unlocked(),
            [this](const HeadId& id, std::vector<RowNorm> norms) { take_norms(id, norms); },
            [this](const std::string& problem) { take_warning(problem); }) {
    for (int i = 0; i < workers_; ++i) threads_.emplace_back([this] { work(); });
    threads_.emplace_back([this] { follow_lines(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    threads_.clear();  // joins
  }

  template <typename Action>
  auto locked(Action action) {
    const std::lock_guard lock(mutex_);
    return action(scheduler_);
  }

  void want(WantedTiles wishes) {
    const std::lock_guard lock(mutex_);
    scheduler_.want(std::move(wishes));
    changed_.notify_all();
  }

  ProbedEntry probe(const HeadId& id, int64_t query, int64_t key);
  int workers() const { return workers_; }

 private:
  Reserve reserve_unlocked() {
    return [this](int64_t bytes, std::string_view purpose) {
      const std::lock_guard lock(mutex_);
      return scheduler_.reserve(bytes, purpose);
    };
  }

  /// A worker's thread: what is most wanted, piece by piece.
  void work();
  /// The thread of the line that follows the mouse, which waits for nobody's piece.
  void follow_lines();
  WorkerScratch make_bench();
  void run(const Assignment& assignment, WorkerScratch& scratch);
  /// Returns with the lock held, as it was called.
  void bind(const Assignment& assignment, std::unique_lock<std::mutex>& lock);
  std::shared_ptr<const BoundMap> make_bound(const HeadId& id, const AttentionProblem& problem,
                                             bool checked);
  void look_up_norms(const Assignment& assignment);
  void keep_norms(HeadCache& head);
  void take_norms(const HeadId& id, const std::vector<RowNorm>& norms);
  void take_warning(const std::string& problem);
  NormCache::Source source_of(const HeadCache& head) const {
    return {head.id, head.problem, scheduler_.call(head.id).mask.get()};
  }

  const TileBackend& backend_;
  const int workers_;
  const int64_t buffer_bytes_;
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  TileScheduler scheduler_;
  std::mutex probe_mutex_;
  WorkerScratch probe_scratch_;
  NormCache keeper_;
  std::vector<std::jthread> threads_;
};

WorkerScratch TileService::Impl::make_bench() {
  return WorkerScratch(backend_, buffer_bytes_, reserve_unlocked(), [this] {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Error(ErrorCode::interrupted, "the window was closed");
  });
}

void TileService::Impl::work() {
  lower_thread_priority();
  WorkerScratch scratch = make_bench();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::optional<Assignment> next = scheduler_.choose();
    if (!next) {
      changed_.wait(lock);
      continue;
    }
    if (!next->piece) {
      bind(*next, lock);
      continue;
    }
    look_up_norms(*next);
    lock.unlock();
    run(*next, scratch);
    lock.lock();
  }
}

void TileService::Impl::follow_lines() {
  WorkerScratch scratch = make_bench();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::optional<Assignment> next = scheduler_.choose_line();
    if (!next) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    run(*next, scratch);
    lock.lock();
  }
}

void TileService::Impl::run(const Assignment& assignment, WorkerScratch& scratch) {
  bool found = true;
  Completion take_in;
  std::string problem;
  try {
    scratch.bind_to(assignment.bound);
    take_in = (*assignment.piece)(scratch);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  scratch.bind_to(nullptr);
  {
    const std::lock_guard lock(mutex_);
    if (take_in) {
      found = scheduler_.finish(assignment, take_in);
      keep_norms(*assignment.head);
    } else {
      scheduler_.fail(assignment, problem);
    }
    changed_.notify_all();
  }
  if (found) wake_();
}

void TileService::Impl::bind(const Assignment& assignment, std::unique_lock<std::mutex>& lock) {
  HeadCache& head = *assignment.head;
  const bool checked = head.checked;
  lock.unlock();
  std::shared_ptr<const BoundMap> bound;
  std::string problem;
  try {
    bound = make_bound(head.id, *head.problem, checked);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  if (bound != nullptr) {
    scheduler_.finish_binding(head, std::move(bound));
  } else {
    scheduler_.fail(assignment, problem);
  }
  changed_.notify_all();
  if (problem.empty()) return;
  lock.unlock();
  wake_();
  lock.lock();
}

std::shared_ptr<const BoundMap> TileService::Impl::make_bound(const HeadId& id,
                                                              const AttentionProblem& problem,
                                                              bool checked) {
  const Reserve reserve = reserve_unlocked();
  const TileBackend::BindCost cost = backend_.bind_cost(problem);
  auto map = std::make_shared<BoundMap>();
  map->reservation = reserve(cost.resident, "the keys of a head of " + problem.name());
  const MemoryReservation meanwhile =
      reserve(cost.transient + kCheckBytes, "reading the keys of a head of " + problem.name());
  if (!checked) problem.check_finite(id.batch, id.head);
  map->bind(backend_, problem, id);
  return map;
}

/// The pass has begun, so norms will be wanted.
void TileService::Impl::look_up_norms(const Assignment& assignment) {
  const auto* pass = std::get_if<PassKey>(&assignment.key);
  HeadCache& head = *assignment.head;
  if (!keeper_.enabled() || pass == nullptr || head.asked_cache || head.norms.complete() ||
      !needs_norms(head.problem->score(), pass->quantity)) {
    return;
  }
  head.asked_cache = true;
  keeper_.look_up(source_of(head));
}

void TileService::Impl::keep_norms(HeadCache& head) {
  if (!keeper_.enabled() || head.norms_on_disk || !head.norms.complete()) return;
  head.norms_on_disk = true;
  try {
    MemoryReservation memory = scheduler_.reserve(NormTable::bytes(head.geometry.rows),
                                                  "the row sums on their way to the disk");
    keeper_.keep(source_of(head), head.norms.norms(), std::move(memory));
  } catch (const std::exception& error) {
    scheduler_.warn(error.what());
  }
}

void TileService::Impl::take_norms(const HeadId& id, const std::vector<RowNorm>& norms) {
  {
    const std::lock_guard lock(mutex_);
    HeadCache& head = scheduler_.head(id);
    head.norms_on_disk = true;
    if (!head.wanted) return;
    head.norms.prepare(head.geometry.rows, [&](int64_t bytes, std::string_view purpose) {
      return scheduler_.reserve(bytes, purpose);
    });
    head.norms.set(0, norms);
    changed_.notify_all();
  }
  wake_();
}

void TileService::Impl::take_warning(const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    scheduler_.warn(problem);
  }
  wake_();
}

ProbedEntry TileService::Impl::probe(const HeadId& id, int64_t query, int64_t key) {
  std::unique_lock lock(mutex_);
  HeadCache& head = scheduler_.head(id);
  if (query < 0 || query >= head.geometry.rows || key < 0 || key >= head.geometry.cols) {
    throw usage_error("the map has no entry " + std::to_string(query) + ", " + std::to_string(key));
  }
  changed_.wait(lock, [&] { return !head.binding; });
  if (head.bound == nullptr) {
    head.binding = true;
    ++head.running;
    const bool checked = head.checked;
    lock.unlock();
    std::shared_ptr<const BoundMap> bound;
    std::exception_ptr failure;
    try {
      bound = make_bound(id, *head.problem, checked);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    scheduler_.finish_binding(head, std::move(bound));
    changed_.notify_all();
    if (failure) std::rethrow_exception(failure);
  }
  const std::shared_ptr<const BoundMap> bound = head.bound;
  const bool divided = needs_norms(head.problem->score(), Quantity::weights);
  const bool known = divided && head.norms.known(IndexRange{query, query + 1});
  RowNorm norm = known ? head.norms.norms()[static_cast<size_t>(query)] : RowNorm();
  lock.unlock();
  ProbedEntry entry{query, key, 0, std::numeric_limits<double>::quiet_NaN()};
  {
    const std::lock_guard probing(probe_mutex_);
    probe_scratch_.bind_to(bound);
    const QueryBlock row = probe_scratch_.read(IndexRange{query, query + 1});
    const IndexRange keys{key, key + 1};
    entry.weight = *probe_scratch_.entries(row, {&norm, 1}, known, keys, Quantity::weights);
    if (!is_linear(head.problem->score())) {
      entry.logit = *probe_scratch_.entries(row, {}, true, keys, Quantity::logits);
    }
    probe_scratch_.bind_to(nullptr);
  }
  if (divided && !known) {
    lock.lock();
    head.norms.set(query, {&norm, 1});
  }
  return entry;
}

TileService::TileService(std::vector<MapCall> calls, const TileBackend& backend,
                         const Settings& settings, std::function<void()> wake)
    : impl_(std::make_unique<Impl>(std::move(calls), backend, settings, std::move(wake))) {}

TileService::~TileService() = default;

MapGeometry TileService::geometry(const HeadId& head) const {
  return impl_->locked([&](TileScheduler& s) { return s.geometry(head); });
}

void TileService::want(WantedTiles wishes) { impl_->want(std::move(wishes)); }

std::shared_ptr<const MapTile> TileService::find(const TileId& id) const {
  return impl_->locked([&](TileScheduler& s) { return s.find(id); });
}

std::shared_ptr<const MapLine> TileService::find_line(const LineRequest& request) const {
  return impl_->locked([&](TileScheduler& s) { return s.find(request); });
}

bool TileService::exact(const HeadId& head) const {
  return impl_->locked([&](TileScheduler& s) { return s.exact(head); });
}

ProbedEntry TileService::probe(const HeadId& head, int64_t query, int64_t key) {
  return impl_->probe(head, query, key);
}

TileSourceStatus TileService::status() const {
  return impl_->locked([&](TileScheduler& s) { return s.status(impl_->workers()); });
}

}  // namespace attnscope
