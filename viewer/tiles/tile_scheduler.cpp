#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>
#include <concepts>
#include <utility>

#include "core/base/error.h"
#include "viewer/tiles/check_wishes.h"

namespace attnscope {
namespace {

/// std::visit() of the ask or pass.
template <class Use>
auto visit_result(const JobKey& key, const Use& use) {
  const auto* const pass = std::get_if<PassKey>(&key.result);
  return pass != nullptr ? use(*pass) : std::visit(use, std::get<Ask>(key.result));
}

/// How many pieces on the key's quantity are under way.
int64_t& running_on(HeadCache& head, const JobKey& key) {
  const Quantity quantity = visit_result(key, [](const auto& k) {
    if constexpr (requires { k.quantity; }) return k.quantity;
    return Quantity::weights;
  });
  return head.running_on[static_cast<size_t>(quantity)];
}

/// A failure has a text, whatever threw it.
std::string cause_text(const std::string& problem) {
  return problem.empty() ? "the work failed without saying why" : problem;
}

/// True of jobs that the thread of lines takes too, so that they follow the mouse.
bool follows_mouse(const JobKey& key) {
  return key.answers<LineRequest>() != nullptr || key.answers<ProbeRequest>() != nullptr;
}

bool is_sampled_sketch(const JobKey& key) {
  return key.answers<SketchRequest>() != nullptr && key.stage == Stage::sampled;
}

/// Heads that stay bound: side A and B, and what was looked at before.
constexpr int kMostBound = 4;

}  // namespace

TileScheduler::TileScheduler(std::unique_ptr<MapWork> work, int64_t memory)
    : work_(std::move(work)),
      budget_(memory),
      tools_{[this](int64_t bytes, std::string_view purpose) { return reserve(bytes, purpose); },
             [this](const HeadId& id) -> HeadCache& { return head(id); }} {}

HeadCache& TileScheduler::head(const HeadId& id) {
  const auto found = heads_.find(id);
  if (found != heads_.end()) return found->second;
  const MapGeometry sizes = geometry(id);
  HeadCache& data = heads_[id];
  data.id = id;
  if (const MapCall* const call = work_->call(id)) data.problem = call->problem.get();
  data.reader = work_->reader();
  data.geometry = sizes;
  return data;
}

const HeadCache* TileScheduler::find_head(const HeadId& id) const {
  const auto found = heads_.find(id);
  return found == heads_.end() ? nullptr : &found->second;
}

bool TileScheduler::waits_for_norms(const LineRequest& line) const {
  const HeadCache& of = heads_.at(line.head);
  return line.reverse && of.problem != nullptr && needs_norms(of.problem->score(), line.quantity) &&
         !of.norms.complete();
}

bool TileScheduler::waits_for_norms(const MassRequest& masses) const {
  const HeadCache& of = heads_.at(masses.head);
  return of.problem != nullptr && needs_norms(of.problem->score(), Quantity::weights) &&
         !of.norms.complete();
}

bool TileScheduler::exact(const HeadId& id) const {
  const HeadCache* data = find_head(id);
  if (data == nullptr) return false;
  for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
    if (!data->quantities[static_cast<size_t>(quantity)].complete && wants_pass(id, quantity)) {
      return false;
    }
  }
  return true;
}

void TileScheduler::want(Wishes wishes) {
  check_wishes(wishes, [this](const HeadId& id) { return geometry(id); });
  for (const Wish& wish : wishes) work_->check(wish.ask);
  if (wishes != wishes_) taken_at_try_.reset();
  wishes_ = std::move(wishes);
  for (auto& [id, head] : heads_) head.wanted = head.sketch_wanted = false;
  tiles_ = {};
  pinned_ = {};
  for (const Wish& wish : wishes_) {
    std::visit(
        [&]<class Asked>(const Asked& asked) {
          if constexpr (std::same_as<Asked, MaskRequest>) return;
          if constexpr (std::same_as<Asked, LineRequest>) pinned_.lines.insert(asked);
          if constexpr (std::same_as<Asked, TileId>) {
            tiles_[static_cast<size_t>(wish.stage)].push_back(asked);
          }
          for_each_head(asked, [&](const HeadId& id) {
            HeadCache& of = head(id);
            if constexpr (std::same_as<Asked, SketchRequest>) {
              of.sketch_wanted = true;
            } else {
              of.wanted = true;
              of.used = store_.tick();
            }
          });
        },
        wish.ask);
  }
  pinned_.tiles = {tiles(Stage::sampled).begin(), tiles(Stage::sampled).end()};
  std::erase_if(failed_heads_, [&](const auto& failed) {
    const HeadCache& of = head(failed.first);
    return !of.wanted && !of.sketch_wanted;
  });
  order_jobs();
  std::erase_if(failed_, [&](const auto& failed) { return !ordered_.contains(failed.first); });
  for (const auto& [key, cause] : std::map(failed_)) fail_dependents(key);
  if (failed_.empty() && failed_heads_.empty()) problem_.clear();
  std::erase_if(jobs_, [&](const auto& job) {
    return !ordered_.contains(job.first) && job.second->running == 0;
  });
}

void TileScheduler::order_jobs() {
  order_.clear();
  ordered_.clear();
  tiles_ordered_ = false;
  std::vector<HeadId> for_lines, for_masses;  // whose norms are waited for
  for (const Wish& wish : wishes_) {
    const auto* const line = std::get_if<LineRequest>(&wish.ask);
    const auto* const masses = std::get_if<MassRequest>(&wish.ask);
    if (line != nullptr && waits_for_norms(*line)) for_lines.push_back(line->head);
    if (masses != nullptr && waits_for_norms(*masses)) for_masses.push_back(masses->head);
  }
  const auto order_norms = [this](std::vector<HeadId>& heads) {
    for (const HeadId& id : std::exchange(heads, {})) order_pass(id, Quantity::weights);
  };
  for (const Wish& wish : wishes_) {
    const bool is_pass = std::holds_alternative<TileId>(wish.ask);
    if (wish.stage == Stage::exact && !is_pass) {
      order_norms(for_lines);
      if (!std::holds_alternative<HeadsCompared>(wish.ask)) order_norms(for_masses);
    }
    std::visit([&](const auto& asked) { order_ask(asked, wish.stage); }, wish.ask);
  }
  order_norms(for_lines);
  order_norms(for_masses);
}

void TileScheduler::order(JobKey key, const std::function<std::shared_ptr<MapJob>()>& make) {
  if (!ordered_.insert(key).second || is_failed(key)) return;
  std::shared_ptr<MapJob>& job = jobs_[key];
  if (job == nullptr) job = make();
  HeadCache& of = heads_.at(job->head());
  order_.push_back({std::move(key), job, &of});
}

void TileScheduler::order_ask(const ProbeRequest& request, Stage) {
  if (store_.find(request) != nullptr) return;
  order({request}, [&] { return work_->probe_job(request); });
}

void TileScheduler::order_ask(const LineRequest& request, Stage) {
  if (store_.find(request) != nullptr) return;
  HeadCache& of = head(request.head);
  order({request}, [&] { return work_->line_job(request, of); });
}

void TileScheduler::order_ask(const MassRequest& request, Stage) {
  if (store_.find(request) != nullptr) return;
  HeadCache& of = head(request.head);
  if (of.problem == nullptr) return;
  order({request}, [&] { return work_->mass_job(request, of); });
}

void TileScheduler::order_ask(const SketchRequest& request, Stage stage) {
  const HeadId& id = request.head;
  if (!work_->has(id, Quantity::weights)) return;
  const HeadCache& of = head(id);
  const bool exact = stage == Stage::exact;
  if (held_.contains({id.call, id.batch})) return;
  if (of.problem == nullptr || (of.sketch != nullptr && (of.sketch->exact || !exact))) return;
  order({request, stage}, [&] { return work_->sketch_job(id, exact); });
}

void TileScheduler::order_ask(const TracksRequest& request, Stage stage) {
  const HeadId& id = request.head;
  if (!work_->has(id, Quantity::weights)) return;
  const HeadCache& of = head(id);
  const bool exact = stage == Stage::exact;
  if (of.problem == nullptr || (of.tracks != nullptr && (of.tracks->exact || !exact))) return;
  order({request, stage}, [&] { return work_->tracks_job(id, exact); });
}

void TileScheduler::let_go_sketches(int64_t call, int64_t batch,
                                    const std::vector<std::shared_ptr<const HeadSketch>>& found) {
  held_.erase({call, batch});
  for (size_t h = 0; h < found.size(); ++h) {
    HeadCache& of = head({call, batch, static_cast<int64_t>(h)});
    if (of.sketch != nullptr) continue;
    of.sketch_memory = reserve(HeadSketch::bytes(found[h]->cells), "a head of the atlas");
    of.sketch = found[h];
  }
  order_jobs();
}

struct TileScheduler::Find {
  TileScheduler& of;

  TilePtr operator()(const TileId& id) const {
    const auto found = of.heads_.find(id.head);
    if (found == of.heads_.end()) return nullptr;
    if (TilePtr tile = found->second.exact_tile(id)) {
      found->second.used = of.store_.tick();
      return tile;
    }
    return of.store_.find(id);
  }
  std::shared_ptr<const HeadSketch> operator()(const SketchRequest& request) const {
    const HeadCache* const head = of.find_head(request.head);
    return head == nullptr ? nullptr : head->sketch;
  }
  std::shared_ptr<const HeadTracks> operator()(const TracksRequest& request) const {
    const HeadCache* const head = of.find_head(request.head);
    return head == nullptr ? nullptr : head->tracks;
  }
  std::shared_ptr<const RowDivergence> operator()(const HeadsCompared& heads) const {
    const HeadCache* const head = of.find_head(heads.a);
    if (head == nullptr) return nullptr;
    const auto found = head->divergences.find(heads.b);
    return found == head->divergences.end() ? nullptr : found->second->published;
  }
  std::shared_ptr<const HeadMask> operator()(const MaskRequest&) const { return nullptr; }
  std::shared_ptr<const VideoFrame> operator()(const FrameRequest&) const { return nullptr; }
  auto operator()(const auto& stored) const { return of.store_.find(stored); }
};

Answer TileScheduler::find(const Ask& ask) {
  return std::visit([this](const auto& asked) -> Answer { return Find{*this}(asked); }, ask);
}

struct TileScheduler::Tell {
  const TileScheduler& of;

  std::string operator()(const TileId& id) const { return of.tile_problem(id); }
  std::string operator()(const SketchRequest& request) const {
    const HeadCache* const head = of.find_head(request.head);
    const bool there = head != nullptr && head->sketch != nullptr;
    return of.cause_of({request, there ? Stage::exact : Stage::sampled});
  }
  std::string operator()(const TracksRequest& request) const { return of_any_stage(request); }
  std::string operator()(const HeadsCompared& heads) const { return of_any_stage(heads); }
  std::string operator()(const MaskRequest&) const { return ""; }
  std::string operator()(const FrameRequest&) const { return ""; }
  std::string operator()(const auto& stored) const {
    return of.store_.holds(stored) ? "" : of.cause_of({stored});
  }

 private:
  std::string of_any_stage(const auto& asked) const {
    const std::string sampled = of.cause_of({asked});
    return sampled.empty() ? of.cause_of({asked, Stage::exact}) : sampled;
  }
};

std::string TileScheduler::problem(const Ask& ask) const {
  return any_failed() ? std::visit(Tell{*this}, ask) : "";
}

bool TileScheduler::is_failed(const JobKey& key) const { return failure_of(key).has_value(); }

std::optional<Failure> TileScheduler::failure_of(const JobKey& key) const {
  if (!any_failed()) return std::nullopt;
  std::optional<Failure> failure;
  bool is_other = false;
  visit_result(key, [&](const auto& result) {
    for_each_head(result, [&](const HeadId& id) {
      const auto found = failed_heads_.find(id);
      if (found != failed_heads_.end() && !failure) {
        failure = {(is_other ? "side B: " : "") + found->second.cause, found->second.for_memory};
      }
      is_other = true;
    });
  });
  if (failure) return failure;
  const auto found = failed_.find(key);
  return found == failed_.end() ? std::nullopt : std::optional(found->second);
}

std::string TileScheduler::cause_of(const JobKey& key) const {
  const std::optional<Failure> failure = failure_of(key);
  return !failure || (failure->for_memory && may_find_memory()) ? "" : failure->cause;
}

/// An atlas and the pass of the head that is looked at take turns: neither waits for all of the
/// other.
std::optional<Assignment> TileScheduler::choose_in_turn() {
  std::optional<Assignment> next;
  if (made_sketch_) next = choose([](const JobKey& key) { return !is_sampled_sketch(key); });
  if (!next) next = choose([](const JobKey&) { return true; });
  made_sketch_ = next && is_sampled_sketch(next->key);
  return next;
}

std::optional<Assignment> TileScheduler::choose() {
  if (runs_one_by_one() && any_running()) return std::nullopt;
  std::optional<Assignment> next = choose_in_turn();
  while (!next && take_up_again()) next = choose_in_turn();
  return next;
}

/// They come first.
std::optional<Assignment> TileScheduler::choose_line() {
  if (runs_one_by_one() && any_running()) return std::nullopt;
  return choose(follows_mouse, true);
}

std::optional<Assignment> TileScheduler::choose(const std::function<bool(const JobKey&)>& wanted,
                                                bool only_bound) {
  for (size_t i = 0; i < order_.size(); ++i) {
    const Ordered& ordered = order_[i];
    if (only_bound && !wanted(ordered.key)) return std::nullopt;
    HeadCache& head = *ordered.head;
    if (!wanted(ordered.key) || is_failed(ordered.key) || ordered.job->done(head)) continue;
    head.used = store_.tick();
    if (ordered.job->needs_bound(head) && head.bound == nullptr) {
      if (head.binding || only_bound) continue;
      head.binding = true;
      ++head.running;
      return Assignment{ordered.key, ordered.job, &head, nullptr, std::nullopt};
    }
    if (const std::optional<HeadId> second = ordered.job->other_head()) {
      HeadCache& other = this->head(*second);
      other.used = store_.tick();
      if (other.bound == nullptr && other.problem != nullptr) {
        if (other.binding || only_bound) continue;
        other.binding = true;
        ++other.running;
        return Assignment{ordered.key, ordered.job, &other, nullptr, std::nullopt};
      }
    }
    if (auto assignment = take_piece(ordered, head)) return assignment;
  }
  return std::nullopt;
}

/// The next piece of a job whose head is ready.
std::optional<Assignment> TileScheduler::take_piece(const Ordered& ordered, HeadCache& head) {
  Assignment assignment{ordered.key, ordered.job, &head, head.bound, std::nullopt};
  const bool others_run = any_running();
  // Making room must not take away what the piece needs.
  ++head.running;
  ++running_on(head, ordered.key);
  ++ordered.job->running;
  try {
    assignment.piece = ordered.job->take(head, tools_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource || !others_run) {
      fail(assignment, {error.what(), error.code() == ErrorCode::resource});
      return std::nullopt;
    }
    // Pieces that are under way may leave room when they are done.
  }
  if (assignment.piece) return assignment;
  --head.running;
  --running_on(head, ordered.key);
  --ordered.job->running;
  return std::nullopt;
}

bool TileScheduler::finish(const Assignment& done, const Completion& take_in) {
  HeadCache& head = *done.head;
  --head.running;
  --running_on(head, done.key);
  --done.job->running;
  const bool found = take_in(head, store_);
  const auto job = jobs_.find(done.key);
  const bool current = job != jobs_.end() && job->second == done.job;
  const bool over =
      done.job->done(head) || (!ordered_.contains(done.key) && done.job->running == 0);
  if (current && over) jobs_.erase(job);
  return found;
}

void TileScheduler::finish_binding(HeadCache& head, std::shared_ptr<const BoundMap> bound) {
  head.binding = false;
  --head.running;
  head.bound = std::move(bound);
  head.checked = head.checked || head.bound != nullptr;
  while (true) {
    HeadCache* oldest = nullptr;
    int count = 0;
    for (auto& [id, other] : heads_) {
      if (other.bound == nullptr) continue;
      ++count;
      if (&other == &head) continue;
      if (oldest == nullptr || other.used < oldest->used) oldest = &other;
    }
    if (count <= kMostBound || oldest == nullptr) return;
    oldest->bound = nullptr;
  }
}

bool TileScheduler::any_running() const {
  return std::any_of(heads_.begin(), heads_.end(),
                     [](const auto& head) { return head.second.running > 0; });
}

void TileScheduler::mark_failed(const JobKey& key, const Failure& failure) {
  problem_ = cause_text(failure.cause);
  failed_[key] = {problem_, failure.for_memory};
  jobs_.erase(key);
}

bool TileScheduler::waits_for(const JobKey& waiting, const JobKey& key) const {
  if (const PassKey* const later = waiting.pass(Stage::sampled)) {
    return !later->first &&
           key == JobKey{PassKey{later->head, later->quantity, later->against, true}};
  }
  if (const PassKey* const pass = key.pass(Stage::exact)) {
    const auto waits = [&](const auto* asked) {
      return asked != nullptr && asked->head == pass->head && waits_for_norms(*asked);
    };
    return pass->quantity == Quantity::weights && !pass->against &&
           (waits(waiting.answers<LineRequest>()) || waits(waiting.answers<MassRequest>()));
  }
  const PassKey* const sampled = key.pass(Stage::sampled);
  const auto* const tile = waiting.answers<TileId>();
  return sampled != nullptr && tile != nullptr && tile->head == sampled->head &&
         tile->quantity == sampled->quantity && tile->against == sampled->against &&
         tile->level >= heads_.at(tile->head).geometry.base_level;
}

/// Jobs that wait for the failed one would wait forever, also those that are wanted only later.
void TileScheduler::fail_dependents(const JobKey& key) {
  for (const Ordered& other : order_) {
    if (waits_for(other.key, key) && !is_failed(other.key)) {
      mark_failed(other.key, *failure_of(key));
    }
  }
}

void TileScheduler::fail(const Assignment& assignment, const Failure& failure) {
  HeadCache& head = *assignment.head;
  if (!assignment.piece && assignment.job->needs_bound(head) && assignment.bound == nullptr) {
    finish_binding(head, nullptr);
    problem_ = cause_text(failure.cause);
    failed_heads_[head.id] = {problem_, failure.for_memory};
    return;
  }
  --head.running;
  --running_on(head, assignment.key);
  --assignment.job->running;
  const auto job = jobs_.find(assignment.key);
  // Another piece of the job failed before; what has begun anew since is not this one's to end.
  if (job == jobs_.end() || job->second != assignment.job) return;
  assignment.job->abandon(head);
  // Nobody waits for it any more.
  if (!ordered_.contains(assignment.key)) {
    jobs_.erase(job);
    return;
  }
  mark_failed(assignment.key, failure);
  fail_dependents(assignment.key);
}

TileSourceStatus TileScheduler::status(int workers) const {
  TileSourceStatus status;
  for (const Ordered& ordered : order_) {
    if (!is_failed(ordered.key)) status.queue += ordered.job->pieces_left(*ordered.head);
  }
  const bool again = may_find_memory();
  status.queue += again ? 1 : 0;
  status.busy = status.queue > 0;
  status.host_bytes = store_.bytes();
  for (const auto& [id, head] : heads_) {
    status.host_bytes += head.bytes() + head.sketch_memory.bytes();
  }
  status.problem = problem_.empty() || again ? warning_ : problem_;
  set_progress(status, workers);
  return status;
}

/// Of the passes that are wished for first: of a difference, or of all numbers of a head.
void TileScheduler::set_progress(TileSourceStatus& status, int workers) const {
  if (tiles(Stage::exact).empty()) return;
  const TileId& first = tiles(Stage::exact).front();
  const HeadCache& head = heads_.at(first.head);
  const auto rows = static_cast<double>(head.geometry.rows);
  double done = 0, all = 0, seconds = 0;
  const auto add = [&](const HeadCache::OfQuantity& of) {
    all += rows;
    if (of.complete) done += rows;
    if (!of.pass) return;
    done += static_cast<double>(of.pass->rows_done);
    if (of.pass->rows_done > 0) seconds = of.pass->worker_seconds / of.pass->rows_done;
  };
  if (first.against) {
    const HeadCache::OfQuantity* const of = head.find({first.quantity, first.against});
    if (of == nullptr) return;
    add(*of);
  } else {
    for (size_t q = 0; q < head.quantities.size(); ++q) {
      if (wants_pass(first.head, static_cast<Quantity>(q))) add(head.quantities[q]);
    }
  }
  status.exact_progress = done / all;
  if (done == all) status.exact_seconds_left = 0;
  if (seconds > 0) status.exact_seconds_left = (all - done) * seconds / workers;
}

}  // namespace attnscope
