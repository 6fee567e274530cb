#include "viewer/tiles/tile_service.h"

#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "core/base/start_thread.h"
#include "core/stream/value_check.h"
#include "viewer/tiles/computed_maps.h"
#include "viewer/tiles/export_maps.h"
#include "viewer/tiles/thread_priority.h"

namespace attnscope {
namespace {

/// A worker's buffers should not take more than this share of the memory, all workers together.
constexpr int64_t kBufferShare = 3;
/// Row sums that were kept are checked in this share of the memory, beside it and for a moment.
constexpr int64_t kCheckShare = 8;
/// A mask is measured in this share of the memory, as long as it takes.
constexpr int64_t kMaskShare = 8;
/// Threads that read an export.
constexpr int kReaders = 2;

Failure failure_from(const std::exception& thrown) {
  const auto* const error = dynamic_cast<const Error*>(&thrown);
  return {failure_text(thrown), error != nullptr && error->code() == ErrorCode::resource};
}

}  // namespace

TileService::TileService(const std::vector<MapCall>& calls, const TileBackend& backend,
                         const Settings& settings, std::function<void()> wake)
    : TileService(computed_maps(calls), &backend, settings, std::move(wake)) {}

TileService::TileService(std::shared_ptr<const TexelReader> reader, const Settings& settings,
                         std::function<void()> wake)
    : TileService(export_maps(std::move(reader)), nullptr, settings, std::move(wake)) {}

TileService::TileService(std::unique_ptr<MapWork> maps, const TileBackend* backend,
                         const Settings& settings, std::function<void()> wake)
    : backend_(backend),
      workers_(settings.threads > 0 ? settings.threads
               : backend != nullptr ? backend->workers()
                                    : kReaders),
      buffer_bytes_(settings.memory / kBufferShare / workers_),
      kept_calls_(settings.kept_calls),
      wake_(std::move(wake)),
      scheduler_(std::move(maps), settings.memory) {
  const auto warn = [this](const std::string& problem) { take_warning(problem); };
  const auto keep_norms = [&](std::optional<NormCache>& keeper,
                              const std::vector<std::filesystem::path>& folders,
                              const std::shared_ptr<const InputSet>& sources) {
    if (backend == nullptr || folders.empty()) return;
    keeper.emplace(
        LseCache(folders, sources), *backend, settings.memory / kCheckShare, reserve_unlocked(),
        [this](const HeadId& id, const std::vector<RowNorm>& norms) { take_norms(id, norms); },
        warn);
  };
  keep_norms(keeper_, settings.cache_folders, settings.sources);
  keep_norms(other_keeper_, settings.other_cache_folders, settings.other_sources);
  if (backend != nullptr && !settings.cache_folders.empty() && settings.call_stamps) {
    sketches_.emplace(
        SketchCache(settings.cache_folders, settings.sources), settings.call_stamps, *backend,
        buffer_bytes_, reserve_unlocked(),
        [this](const SketchKeeper::Source& of, const SketchKeeper::Sketches& found) {
          take_sketches(of, found);
        },
        warn);
  }
  const Taken taken = [this] { return scheduler_.memory_taken(); };
  if (backend != nullptr) {
    masks_.emplace(*backend, settings.memory / kMaskShare, reserve_unlocked(), taken, wake_);
  }
  if (settings.read_frame) frames_.emplace(settings.read_frame, reserve_unlocked(), taken, wake_);
  const auto wanted = static_cast<size_t>(workers_) + 1;
  try {
    for (int i = 0; i < workers_; ++i) start_thread(threads_, wanted, [this] { work(); });
    start_thread(threads_, wanted, [this] { follow_lines(); });
  } catch (...) {
    end_threads();
    throw;
  }
}

TileService::~TileService() { end_threads(); }

void TileService::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();  // joins
}

MapGeometry TileService::geometry(const HeadId& head) const {
  const std::lock_guard lock(mutex_);
  return scheduler_.geometry(head);
}

/// Its lists are held as long as the source is.
int64_t TileService::order_number(const MapPlaces& places) {
  if (places.is_identity() || backend_ == nullptr) return TileSource::order_number(places);
  const std::lock_guard lock(mutex_);
  const auto known = std::find(orders_.begin(), orders_.end(), places);
  if (known == orders_.end()) {
    added_memory_.push_back(scheduler_.reserve(places.rows.bytes() + places.keys.bytes(),
                                               "another order of the tokens"));
    orders_.push_back(places);
  }
  return scheduler_.order_number(places);
}

void TileService::add(const std::vector<MapCall>& calls, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  added_memory_.push_back(scheduler_.reserve(bytes, "the calls that were added to the capture"));
  scheduler_.add(calls);
}

void TileService::want(Wishes wishes) {
  std::optional<MaskRequest> mask;
  std::vector<FrameRequest> frames;
  for (const Wish& wish : wishes) {
    if (const auto* asked = std::get_if<MaskRequest>(&wish.ask)) mask = *asked;
    if (const auto* asked = std::get_if<FrameRequest>(&wish.ask)) frames.push_back(*asked);
  }
  {
    const std::lock_guard lock(mutex_);
    look_up_sketches(wishes);
    scheduler_.want(std::move(wishes));
    if (masks_) want_mask(mask);
    changed_.notify_all();
  }
  // Once it is known that there are pictures of such sizes.
  if (frames_) frames_->want(std::move(frames));
}

/// With the lock held.
void TileService::want_mask(const std::optional<MaskRequest>& mask) {
  if (!mask) return masks_->want(std::nullopt);
  HeadId stored = mask->head;
  stored.order = 0;
  MapPlaces places;
  if (mask->head.order > 0) places = orders_[static_cast<size_t>(mask->head.order - 1)];
  masks_->want(MaskKeeper::Wish{*mask, scheduler_.work().call(stored)->problem, places});
}

Answer TileService::find(const Ask& ask) const {
  if (const auto* asked = std::get_if<FrameRequest>(&ask); asked != nullptr && frames_) {
    return frames_->find(*asked);
  }
  if (const auto* asked = std::get_if<MaskRequest>(&ask); asked != nullptr && masks_) {
    return masks_->find(*asked);
  }
  const std::lock_guard lock(mutex_);
  return scheduler_.find(ask);
}

std::string TileService::problem(const Ask& ask) const {
  const std::lock_guard lock(mutex_);
  return scheduler_.problem(ask);
}

bool TileService::offers(const Ask& kind) const {
  if (std::holds_alternative<FrameRequest>(kind)) return frames_.has_value();
  const bool is_computed =
      std::holds_alternative<SketchRequest>(kind) || std::holds_alternative<MassRequest>(kind) ||
      std::holds_alternative<TracksRequest>(kind) || std::holds_alternative<MaskRequest>(kind);
  return backend_ != nullptr || !is_computed;
}

bool TileService::exact(const HeadId& head) const {
  const std::lock_guard lock(mutex_);
  return scheduler_.exact(head);
}

TileSourceStatus TileService::status() const {
  TileSourceStatus status;
  {
    const std::lock_guard lock(mutex_);
    status = scheduler_.status(workers_);
  }
  if (frames_) {
    status.queue += frames_->missing();
    status.host_bytes += frames_->bytes();
  }
  if (masks_) {
    status.queue += masks_->busy() ? 1 : 0;
    status.host_bytes += masks_->bytes();
  }
  status.busy = status.queue > 0;
  return status;
}

Reserve TileService::reserve_unlocked() {
  return [this](int64_t bytes, std::string_view purpose) {
    const std::lock_guard lock(mutex_);
    return scheduler_.reserve(bytes, purpose);
  };
}

NormCache* TileService::keeper_of(const HeadId& id) {
  if (id.order != 0) return nullptr;
  std::optional<NormCache>& keeper = can_keep(id) ? keeper_ : other_keeper_;
  return keeper ? &*keeper : nullptr;
}

std::optional<WorkerScratch> TileService::make_scratch() {
  if (backend_ == nullptr) return std::nullopt;
  return std::make_optional<WorkerScratch>(*backend_, buffer_bytes_, reserve_unlocked(), [this] {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Error(ErrorCode::interrupted, "the window was closed");
  });
}

/// Whoever has nothing to do holds no buffers.
void TileService::rest(std::optional<WorkerScratch>& scratch, std::unique_lock<std::mutex>& lock) {
  if (scratch && scratch->release_buffers()) {
    if (scheduler_.lacks_memory()) changed_.notify_all();
    return;
  }
  if (scheduler_.lacks_memory()) {
    changed_.wait_for(lock, kMemoryWait);
  } else {
    changed_.wait(lock);
  }
}

void TileService::work() {
  lower_thread_priority();
  std::optional<WorkerScratch> scratch = make_scratch();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::optional<Assignment> next = scheduler_.choose();
    if (!next) {
      rest(scratch, lock);
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

void TileService::follow_lines() {
  std::optional<WorkerScratch> scratch = make_scratch();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::optional<Assignment> next = scheduler_.choose_line();
    if (!next) {
      rest(scratch, lock);
      continue;
    }
    lock.unlock();
    run(*next, scratch);
    lock.lock();
  }
}

void TileService::run(Assignment& assignment, std::optional<WorkerScratch>& scratch) {
  bool found = true;
  Completion take_in;
  Failure failure;
  try {
    if (scratch) scratch->bind_to(assignment.bound);
    take_in = (*assignment.piece)(scratch ? &*scratch : nullptr);
  } catch (const std::exception& error) {
    failure = failure_from(error);
  }
  if (scratch) scratch->bind_to(nullptr);
  // The memory that the piece holds has to be free before others look for room.
  assignment.piece.reset();
  {
    const std::lock_guard lock(mutex_);
    if (take_in) {
      found = scheduler_.finish(assignment, take_in);
      // Who still holds a sample keeps it from giving way.
      take_in = nullptr;
      keep_norms(*assignment.head);
      keep_sketches(assignment);
    } else {
      scheduler_.fail(assignment, failure);
    }
    changed_.notify_all();
  }
  if (found) wake_();
}

void TileService::bind(const Assignment& assignment, std::unique_lock<std::mutex>& lock) {
  HeadCache& head = *assignment.head;
  const bool checked = head.checked;
  lock.unlock();
  std::shared_ptr<const BoundMap> bound;
  Failure failure;
  try {
    bound = make_bound(head.id, *head.problem, checked);
  } catch (const std::exception& error) {
    failure = failure_from(error);
  }
  lock.lock();
  const bool failed = bound == nullptr;
  if (failed) {
    scheduler_.fail(assignment, failure);
  } else {
    scheduler_.finish_binding(head, std::move(bound));
  }
  changed_.notify_all();
  if (!failed) return;
  lock.unlock();
  wake_();
  lock.lock();
}

std::shared_ptr<const BoundMap> TileService::make_bound(const HeadId& id,
                                                        const AttentionProblem& problem,
                                                        bool checked) {
  const Reserve reserve = reserve_unlocked();
  const TileBackend::BindCost cost = backend_->bind_cost(problem);
  auto map = std::make_shared<BoundMap>();
  map->reservation = reserve(cost.resident, "the keys of a head of " + problem.name());
  const MemoryReservation meanwhile =
      reserve(cost.transient + kCheckBytes, "reading the keys of a head of " + problem.name());
  if (!checked) {
    const HeadTask whole{
        &problem, id.batch, id.head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
    check_values({&whole, 1}, {}, {.backend = backend_});
  }
  map->bind(*backend_, problem, id);
  return map;
}

/// The pass has begun, so norms will be wanted.
void TileService::look_up_norms(const Assignment& assignment) {
  const PassKey* const pass = assignment.key.pass(Stage::exact);
  HeadCache& head = *assignment.head;
  NormCache* const keeper = keeper_of(head.id);
  if (keeper == nullptr || pass == nullptr || pass->against || head.asked_cache ||
      head.norms.complete() || !needs_norms(head.problem->score(), pass->quantity)) {
    return;
  }
  head.asked_cache = true;
  keeper->look_up(source_of(head));
}

void TileService::keep_norms(HeadCache& head) {
  NormCache* const keeper = keeper_of(head.id);
  if (keeper == nullptr || head.norms_on_disk || !head.norms.complete()) return;
  head.norms_on_disk = true;
  try {
    MemoryReservation memory = scheduler_.reserve(NormTable::bytes(head.geometry.rows),
                                                  "the row sums on their way to the disk");
    keeper->keep(source_of(head), head.norms.norms(), std::move(memory));
  } catch (const std::exception& error) {
    scheduler_.warn(failure_text(error));
  }
}

void TileService::take_norms(const HeadId& id, const std::vector<RowNorm>& norms) {
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

/// Once for each call and batch item, before its first sketch is made.
void TileService::look_up_sketches(const Wishes& wishes) {
  if (!sketches_) return;
  for (const Wish& wish : wishes) {
    const auto* const asked = std::get_if<SketchRequest>(&wish.ask);
    if (asked == nullptr) continue;
    const HeadId& id = asked->head;
    const MapCall* const call = scheduler_.work().call(id);
    if (!can_keep(id)) continue;
    if (!kept_sketches_.try_emplace({id.call, id.batch}).second) continue;
    scheduler_.hold_sketches(id.call, id.batch);
    sketches_->look_up({id.call, id.batch, call->problem.get()});
  }
}

void TileService::take_sketches(const SketchKeeper::Source& of,
                                const SketchKeeper::Sketches& found) {
  {
    const std::lock_guard lock(mutex_);
    KeptSketches& kept = kept_sketches_[{of.call, of.batch}];
    kept.any = !found.empty();
    for (const auto& sketch : found) kept.exact += sketch->exact ? 1 : 0;
    scheduler_.let_go_sketches(of.call, of.batch, found);
    changed_.notify_all();
  }
  wake_();
}

/// When the last head of a call has come, and when the last has become exact.
void TileService::keep_sketches(const Assignment& done) {
  if (!sketches_ || done.key.answers<SketchRequest>() == nullptr) return;
  const HeadId& id = done.head->id;
  if (!can_keep(id)) return;
  const auto& problem = scheduler_.work().call(id)->problem;
  KeptSketches& kept = kept_sketches_[{id.call, id.batch}];
  SketchKeeper::Sketches all;
  int64_t exact = 0;
  for (int64_t h = 0; h < problem->num_heads(); ++h) {
    auto sketch = std::get<std::shared_ptr<const HeadSketch>>(
        scheduler_.find(SketchRequest{{id.call, id.batch, h}}));
    if (sketch == nullptr) return;
    exact += sketch->exact ? 1 : 0;
    all.push_back(std::move(sketch));
  }
  if (kept.any && (exact < problem->num_heads() || exact <= kept.exact)) return;
  kept = {true, exact};
  sketches_->keep({id.call, id.batch, problem.get()}, std::move(all));
}

void TileService::take_warning(const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    scheduler_.warn(problem);
  }
  wake_();
}

}  // namespace attnscope
