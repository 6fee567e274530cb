#include "viewer/tiles/tile_scheduler.h"

#include <algorithm>

#include "core/base/error.h"
#include "viewer/tiles/check_wishes.h"

namespace attnscope {
namespace {

/// How many pieces on the key's quantity are under way.
int64_t& running_on(HeadCache& head, const JobKey& key) {
  const Quantity quantity = std::visit(
      [](const auto& k) {
        if constexpr (requires { k.quantity; }) return k.quantity;
        return Quantity::weights;
      },
      key);
  return head.running_on[static_cast<size_t>(quantity)];
}

const HeadId& head_of(const JobKey& key) {
  return std::visit([](const auto& k) -> const HeadId& { return k.head; }, key);
}

/// The second head of what compares two.
std::optional<HeadId> other_of(const JobKey& key) {
  return std::visit(
      [](const auto& k) -> std::optional<HeadId> {
        if constexpr (requires { k.against; }) {
          if (k.against) return k.against->other;
        }
        if constexpr (requires { k.other; }) return k.other;
        return std::nullopt;
      },
      key);
}

/// A failure has a text, whatever threw it.
std::string cause_text(const std::string& problem) {
  return problem.empty() ? "the work failed without saying why" : problem;
}

/// True of jobs that the thread of lines takes too, so that they follow the mouse.
bool follows_mouse(const JobKey& key) {
  return std::holds_alternative<LineRequest>(key) || std::holds_alternative<ProbeRequest>(key);
}

bool is_sampled_sketch(const JobKey& key) {
  const auto* sketch = std::get_if<SketchKey>(&key);
  return sketch != nullptr && !sketch->exact;
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

void TileScheduler::want(WantedTiles wishes) {
  check_wishes(wishes, [this](const HeadId& id) { return geometry(id); });
  work_->check(wishes);
  if (wishes != wishes_) taken_at_try_.reset();
  wishes_ = std::move(wishes);
  for (auto& [id, head] : heads_) head.wanted = head.sketch_wanted = false;
  const auto mark = [&](const HeadId& id) {
    HeadCache& data = head(id);
    data.wanted = true;
    data.used = store_.tick();
  };
  for (const auto& line : {wishes_.line, wishes_.other_line, wishes_.words_line}) {
    if (line) mark(line->head);
  }
  if (wishes_.masses) mark(wishes_.masses->head);
  for (const ProbeRequest& probe : wishes_.probes) mark(probe.head);
  for (const TileId& tile : wishes_.tiles) {
    mark(tile.head);
    if (tile.against) mark(tile.against->other);
  }
  for (const DifferenceId& each : wishes_.exact_differences) {
    mark(each.head);
    mark(each.against.other);
  }
  if (wishes_.divergence) {
    mark(wishes_.divergence->a);
    mark(wishes_.divergence->b);
  }
  for (const HeadId& id : wishes_.exact) mark(id);
  if (wishes_.tracks) mark(*wishes_.tracks);
  for (const auto* heads : {&wishes_.sketches, &wishes_.exact_sketches}) {
    for (const HeadId& id : *heads) head(id).sketch_wanted = true;
  }
  pinned_ = {{wishes_.tiles.begin(), wishes_.tiles.end()}, {}};
  for (const auto& line : {wishes_.line, wishes_.other_line, wishes_.words_line}) {
    if (line) pinned_.lines.insert(*line);
  }
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
  for (const ProbeRequest& probe : wishes_.probes) order_probe(probe);
  if (wishes_.line) order_line(*wishes_.line);
  if (wishes_.other_line) order_line(*wishes_.other_line);
  if (wishes_.words_line) order_line(*wishes_.words_line);
  if (wishes_.masses) order_masses(*wishes_.masses);
  order_tiles();
  order_tracks(false);
  for (const HeadId& id : wishes_.sketches) order_sketch(id, false);
  order_divergence(false);
  for (const DifferenceId& id : wishes_.exact_differences) order_difference(id);
  for (const HeadId& id : wishes_.exact) {
    for (const Quantity quantity : {Quantity::logits, Quantity::weights}) {
      if (wants_pass(id, quantity)) order_pass(id, quantity);
    }
  }
  for (const auto& line : {wishes_.line, wishes_.other_line, wishes_.words_line}) {
    if (line && waits_for_norms(*line)) order_pass(line->head, Quantity::weights);
  }
  order_divergence(true);
  const auto& masses = wishes_.masses;
  if (masses && waits_for_norms(*masses)) order_pass(masses->head, Quantity::weights);
  order_tracks(true);
  for (const HeadId& id : wishes_.exact_sketches) order_sketch(id, true);
}

void TileScheduler::order(JobKey key, const std::function<std::shared_ptr<MapJob>()>& make) {
  if (!ordered_.insert(key).second || is_failed(key)) return;
  std::shared_ptr<MapJob>& job = jobs_[key];
  if (job == nullptr) job = make();
  HeadCache& of = heads_.at(job->head());
  order_.push_back({std::move(key), job, &of});
}

void TileScheduler::order_probe(const ProbeRequest& request) {
  if (store_.find(request)) return;
  order(request, [&] { return work_->probe_job(request); });
}

void TileScheduler::order_line(const LineRequest& request) {
  if (store_.find(request) != nullptr) return;
  HeadCache& of = head(request.head);
  order(request, [&] { return work_->line_job(request, of); });
}

void TileScheduler::order_masses(const MassRequest& request) {
  if (store_.find(request) != nullptr) return;
  HeadCache& of = head(request.head);
  if (of.problem == nullptr) return;
  order(request, [&] { return work_->mass_job(request, of); });
}

void TileScheduler::order_sketch(const HeadId& id, bool exact) {
  if (!work_->has(id, Quantity::weights)) return;
  const HeadCache& of = head(id);
  if (held_.contains({id.call, id.batch})) return;
  if (of.problem == nullptr || (of.sketch != nullptr && (of.sketch->exact || !exact))) return;
  order(SketchKey{id, exact}, [&] { return work_->sketch_job(id, exact); });
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

std::shared_ptr<const HeadSketch> TileScheduler::find_sketch(const HeadId& id) const {
  const HeadCache* of = find_head(id);
  return of == nullptr ? nullptr : of->sketch;
}

std::string TileScheduler::sketch_problem(const HeadId& id) const {
  if (find_sketch(id) != nullptr) return cause_of(SketchKey{id, true});
  return cause_of(SketchKey{id, false});
}

bool TileScheduler::is_failed(const JobKey& key) const {
  if (!any_failed()) return false;
  const std::optional<HeadId> other = other_of(key);
  return failed_heads_.contains(head_of(key)) || (other && failed_heads_.contains(*other)) ||
         failed_.contains(key);
}

std::optional<Failure> TileScheduler::failure_of(const JobKey& key) const {
  if (const auto found = failed_heads_.find(head_of(key)); found != failed_heads_.end()) {
    return found->second;
  }
  if (const std::optional<HeadId> other = other_of(key)) {
    const auto found = failed_heads_.find(*other);
    if (found != failed_heads_.end()) {
      return Failure{"side B: " + found->second.cause, found->second.for_memory};
    }
  }
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
  const auto* line = std::get_if<LineRequest>(&waiting);
  const auto* masses = std::get_if<MassRequest>(&waiting);
  const auto* tile = std::get_if<TileId>(&waiting);
  const auto* pass = std::get_if<PassKey>(&key);
  const auto* overview = std::get_if<OverviewKey>(&key);
  const auto* later = std::get_if<OverviewKey>(&waiting);
  return (later && !later->first &&
          key == JobKey{OverviewKey{later->head, later->quantity, later->against, true}}) ||
         (pass && line && line->head == pass->head && pass->quantity == Quantity::weights &&
          !pass->against && waits_for_norms(*line)) ||
         (pass && masses && masses->head == pass->head && pass->quantity == Quantity::weights &&
          !pass->against && waits_for_norms(*masses)) ||
         (overview && tile && tile->head == overview->head &&
          tile->quantity == overview->quantity && tile->against == overview->against &&
          tile->level >= heads_.at(tile->head).geometry.base_level);
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
  if (wishes_.line && !store_.holds(*wishes_.line)) {
    status.line_problem = cause_of(*wishes_.line);
  }
  if (wishes_.other_line && status.line_problem.empty() && !store_.holds(*wishes_.other_line)) {
    status.line_problem = cause_of(*wishes_.other_line);
  }
  if (wishes_.words_line && !store_.holds(*wishes_.words_line)) {
    status.words_problem = cause_of(*wishes_.words_line);
  }
  if (wishes_.masses && status.words_problem.empty() && !store_.holds(*wishes_.masses)) {
    status.words_problem = cause_of(*wishes_.masses);
  }
  for (size_t i = 0; any_failed() && status.tiles_problem.empty() && i < wishes_.tiles.size();
       ++i) {
    status.tiles_problem = tile_problem(wishes_.tiles[i]);
  }
  if (!wishes_.exact_differences.empty()) {
    const DifferenceId& first = wishes_.exact_differences.front();
    const HeadCache& head = heads_.at(first.head);
    const HeadCache::OfQuantity* const of = head.find({first.quantity, first.against});
    const auto rows = static_cast<double>(head.geometry.rows);
    if (of != nullptr && of->complete) {
      status.exact_progress = 1;
      status.exact_seconds_left = 0;
    } else if (of != nullptr && of->pass && of->pass->rows_done > 0) {
      const auto done = static_cast<double>(of->pass->rows_done);
      status.exact_progress = done / rows;
      status.exact_seconds_left = of->pass->worker_seconds / done * (rows - done) / workers;
    }
    return status;
  }
  if (wishes_.exact.empty()) return status;
  const HeadId& first = wishes_.exact.front();
  const HeadCache& head = heads_.at(first);
  double done = 0, all = 0, seconds = 0;
  for (size_t q = 0; q < head.quantities.size(); ++q) {
    if (!wants_pass(first, static_cast<Quantity>(q))) continue;
    const HeadCache::OfQuantity& of = head.quantities[q];
    const auto rows = static_cast<double>(head.geometry.rows);
    all += rows;
    if (of.complete) done += rows;
    if (!of.pass) continue;
    done += static_cast<double>(of.pass->rows_done);
    if (of.pass->rows_done > 0) seconds = of.pass->worker_seconds / of.pass->rows_done;
  }
  status.exact_progress = done / all;
  if (done == all) status.exact_seconds_left = 0;
  if (seconds > 0) status.exact_seconds_left = (all - done) * seconds / workers;
  return status;
}

}  // namespace attnscope
