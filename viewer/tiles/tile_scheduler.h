#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "viewer/tiles/map_work.h"
#include "viewer/view/maps/tile_source.h"

namespace attnscope {

/// The rows of a head that all its tiles are cut from: of a sample of them, or, exactly, of all.
struct PassKey {
  HeadId head;
  Quantity quantity = Quantity::weights;
  std::optional<Against> against = {};
  bool first = false;  ///< of the sample's first stage alone
  friend auto operator<=>(const PassKey&, const PassKey&) = default;
};
/// The result that a job makes, as the key of the job.
struct JobKey {
  std::variant<Ask, PassKey> result;
  Stage stage = Stage::sampled;
  friend auto operator<=>(const JobKey&, const JobKey&) = default;
  /// The ask that it answers, where it is a T; else null.
  template <class T>
  const T* answers() const {
    const Ask* const ask = std::get_if<Ask>(&result);
    return ask == nullptr ? nullptr : std::get_if<T>(ask);
  }
  /// Null where it answers an ask by itself, or is of another stage.
  const PassKey* pass(Stage of) const {
    return stage == of ? std::get_if<PassKey>(&result) : nullptr;
  }
};

/// The next work of a worker: a piece of a job, or, without one, binding the head.
struct Assignment {
  JobKey key;
  std::shared_ptr<MapJob> job;
  HeadCache* head = nullptr;
  std::shared_ptr<const BoundMap> bound;
  std::optional<WorkItem> piece;
};

/// Why work failed.
struct Failure {
  std::string cause;        ///< one line; empty: nobody said why
  bool for_memory = false;  ///< the budget did not suffice
};

/// Decides what is done in which order, and keeps what was done: heads, tiles, lines, the memory of
/// all of them. Starts no threads and computes nothing. Not thread-safe: every call, and every use
/// of HeadCache, is under its owner's lock.
class TileScheduler {
 public:
  TileScheduler(std::unique_ptr<MapWork> work, int64_t memory);

  const MapWork& work() const { return *work_; }
  /// Adds calls behind those that are there.
  void add(const std::vector<MapCall>& calls) { work_->add(calls); }
  MapGeometry geometry(const HeadId& head) const { return work_->geometry(head); }
  int64_t order_number(const MapPlaces& places) { return work_->order_number(places); }
  /// Throws Error(usage) where there is no such head.
  HeadCache& head(const HeadId& id);

  /// Throws Error(usage) where something is not there; nothing has changed then.
  void want(Wishes wishes);
  /// Nothing where all that is wanted is done or under way. What failed for memory begins anew once
  /// nothing is under way and less memory is taken than when it was last tried.
  std::optional<Assignment> choose();
  /// A piece of a line or a probe that can be begun with at once; nothing where there is none.
  std::optional<Assignment> choose_line();
  /// The results of a piece; true where something new can be found.
  bool finish(const Assignment& done, const Completion& take_in);
  /// `bound` null: it failed.
  void finish_binding(HeadCache& head, std::shared_ptr<const BoundMap> bound);
  /// Will not be tried again before it was not wanted for once, but for memory. A head that could
  /// not be bound fails as a whole.
  void fail(const Assignment& assignment, const Failure& failure);
  void warn(const std::string& problem) { warning_ = problem; }

  /// As TileSource; of pictures and masks, which others bring, nothing.
  Answer find(const Ask& ask);
  std::string problem(const Ask& ask) const;
  /// No sketches of a batch item of a call are made until they are let go: somebody looks for kept
  /// ones.
  void hold_sketches(int64_t call, int64_t batch) { held_.insert({call, batch}); }
  /// Takes what was found, one a head, or nothing; the others are made.
  void let_go_sketches(int64_t call, int64_t batch,
                       const std::vector<std::shared_ptr<const HeadSketch>>& found);
  bool exact(const HeadId& head) const;
  TileSourceStatus status(int workers) const;
  /// Some work failed for memory. It waits for what others give back, which nobody announces:
  /// choose() is to be asked now and then.
  bool lacks_memory() const;

  /// Drops what was not used for the longest time, wishes last, to make room. Throws
  /// Error(resource).
  MemoryReservation reserve(int64_t bytes, std::string_view purpose);
  /// Also without the owner's lock.
  int64_t memory_taken() const { return budget_.used(); }

 private:
  struct Find;
  struct Tell;
  struct Ordered {
    JobKey key;
    std::shared_ptr<MapJob> job;
    HeadCache* head = nullptr;
  };
  /// `only_bound`: of the first jobs alone, as long as they are wanted, and no binding.
  std::optional<Assignment> choose(const std::function<bool(const JobKey&)>& wanted,
                                   bool only_bound = false);
  std::optional<Assignment> choose_in_turn();
  std::optional<Assignment> take_piece(const Ordered& ordered, HeadCache& head);
  void order_jobs();
  void order_ask(const ProbeRequest& request, Stage stage);
  void order_ask(const LineRequest& request, Stage stage);
  void order_ask(const MassRequest& request, Stage stage);
  void order_ask(const TileId& id, Stage stage);
  void order_ask(const SketchRequest& request, Stage stage);
  void order_ask(const HeadsCompared& heads, Stage stage);
  void order_ask(const TracksRequest& request, Stage stage);
  void order_ask(const MaskRequest&, Stage) {}
  void order_ask(const FrameRequest&, Stage) {}
  void order_tiles();
  void order_fine_tile(const TileId& id);
  void order_coarse_tile(const TileId& id, bool first_stage);
  void order_pass(const HeadId& id, Quantity quantity);
  void order_difference(const DifferenceId& id);
  /// The tiles that are wished for at this stage, in their order.
  const std::vector<TileId>& tiles(Stage stage) const { return tiles_[static_cast<size_t>(stage)]; }
  bool is_wanted(const HeadId& head, const MapNumbers& numbers) const;
  void order(JobKey key, const std::function<std::shared_ptr<MapJob>()>& make);
  /// Why this job, or its head as a whole, failed; nothing: it did not.
  std::optional<Failure> failure_of(const JobKey& key) const;
  /// The failure's text to be shown; empty as well where the job may be taken up again.
  std::string cause_of(const JobKey& key) const;
  bool any_failed() const { return !failed_.empty() || !failed_heads_.empty(); }
  bool is_failed(const JobKey& key) const;
  std::string tile_problem(const TileId& id) const;
  void set_progress(TileSourceStatus& status, int workers) const;
  bool wants_logits(const HeadId& head) const;
  bool wants_pass(const HeadId& id, Quantity quantity) const;
  bool waits_for_norms(const LineRequest& line) const;
  bool waits_for_norms(const MassRequest& masses) const;
  void mark_failed(const JobKey& key, const Failure& failure);
  bool waits_for(const JobKey& waiting, const JobKey& key) const;
  void fail_dependents(const JobKey& key);
  bool make_room();
  bool drop_sketches();
  void drop_samples(int64_t bytes);
  bool is_cut(const HeadId& id, const MapNumbers& numbers, const OverviewProgress& sampled) const;
  bool may_find_memory() const;
  /// Where memory was short: two pieces at once may be what did not fit.
  bool runs_one_by_one() const { return taken_at_try_.has_value(); }
  bool take_up_again();
  bool any_running() const;
  const HeadCache* find_head(const HeadId& id) const;

  const std::unique_ptr<MapWork> work_;
  MemoryBudget budget_;
  TileStore store_;
  const JobTools tools_;
  std::map<HeadId, HeadCache> heads_;
  Wishes wishes_;
  /// Of wishes_, that are for tiles, by stage.
  std::array<std::vector<TileId>, 2> tiles_;
  std::set<std::pair<int64_t, int64_t>> held_;  ///< calls and batch items
  TileStore::Pinned pinned_;
  std::map<JobKey, std::shared_ptr<MapJob>> jobs_;
  std::vector<Ordered> order_;
  bool tiles_ordered_ = false;  ///< by order_jobs(), which goes on
  std::set<JobKey> ordered_;
  bool made_sketch_ = false;  ///< the last piece was of a sampled sketch
  std::map<JobKey, Failure> failed_;
  std::map<HeadId, Failure> failed_heads_;
  /// Bytes that were taken when work that had failed for memory was last tried; nothing: not yet
  /// since these wishes are wanted.
  std::optional<int64_t> taken_at_try_;
  std::string problem_, warning_;
};

}  // namespace attnscope
