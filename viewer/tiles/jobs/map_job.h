#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "viewer/tiles/jobs/head_cache.h"
#include "viewer/tiles/jobs/tile_store.h"

namespace attnscope {

/// Takes a piece's results in. Called with the service's lock held; true where something new can be
/// found.
using Completion = std::function<bool(HeadCache& head, TileStore& store)>;
/// A piece of work: some milliseconds, called without the lock. Pieces of bound heads get the
/// scratch of the thread that runs them; others null.
using WorkItem = std::function<Completion(WorkerScratch* scratch)>;

/// The service's functions that jobs may use, with its lock held.
struct JobTools {
  Reserve reserve;
  /// The cache of another head.
  std::function<HeadCache&(const HeadId& id)> head;
};

/// A tile, line, entry, overview or pass that is wanted, cut into pieces for the workers. Members
/// are called with the service's lock held; pieces own or share all that they use.
class MapJob {
 public:
  explicit MapJob(const HeadId& head) : head_(head) {}
  virtual ~MapJob() = default;

  const HeadId& head() const { return head_; }
  /// True where its pieces need the head to be bound: by default where its map is computed.
  virtual bool needs_bound(const HeadCache& head) const { return head.problem != nullptr; }
  /// A second head that has to be bound as well, where it is computed.
  virtual std::optional<HeadId> other_head() const { return std::nullopt; }
  virtual bool done(const HeadCache& head) const = 0;
  /// Pieces that are not done.
  virtual int64_t pieces_left(const HeadCache& head) const = 0;
  /// The next piece, or nothing while there is nothing to begin with. May throw Error; then it may
  /// be asked again.
  virtual std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) = 0;
  /// A piece failed: what was kept with the head for it is of no use any more.
  virtual void abandon(HeadCache& head) { (void)head; }

  int64_t running = 0;  ///< pieces under way, the one being taken included

 private:
  const HeadId head_;
};

/// A job of one piece.
class OnePieceJob : public MapJob {
 public:
  using MapJob::MapJob;
  bool done(const HeadCache&) const final { return done_; }
  int64_t pieces_left(const HeadCache&) const final { return done_ ? 0 : 1; }
  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) final;

 protected:
  virtual WorkItem piece(HeadCache& head, const JobTools& tools) = 0;

 private:
  bool taken_ = false, done_ = false;
};

/// Multiplications of a piece, times two: some 10 ms of one core.
inline constexpr double kPieceFlops = 2e9;
/// Rows that cost `flops` with `keys` keys; at least 1.
int64_t piece_rows(const AttentionProblem& problem, int64_t keys, double flops = kPieceFlops);

}  // namespace attnscope
