#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "core/stream/bound_norms.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"
#include "core/stream/value_panels.h"

namespace attnscope {

/// Row panels of a bound head, ready to be computed.
struct Panel {
  int64_t task = 0;
  IndexRange rows;  ///< positions among the task's rows
  const BoundHead* head = nullptr;
  const BoundValues* values = nullptr;  ///< where the stream needs V
  const BoundNorms* norms = nullptr;    ///< of all rows of the task, where they come first
};

/// How heads are bound and cut. A value.
struct PanelQueueOptions {
  int64_t panel_rows = 1;
  int64_t bound_heads = 1;   ///< heads that are bound, or being bound, at once
  int workers = 1;           ///< threads that take panels
  bool with_values = false;  ///< V is bound beside K
  int64_t norm_rows = 0;  ///< norms are computed beside K, so many rows at a time; 0: they are not
  /// Panels are wanted in the order of the rows, because whoever takes the results waits for those
  /// before it. Otherwise a head whose last rows have more keys than its first ones, as a causal
  /// mask leaves them, is taken from its end: what takes longest begins first.
  bool in_order = false;
  /// Says which task is next, each once and ascending, and nothing when none is left: of a stream
  /// that several processes share. Called by one thread at a time; may wait. Empty: all tasks, in
  /// order.
  std::function<std::optional<int64_t>()> next_task = {};
};

/// How many panels the heads of a stream have. A value.
struct PanelCounts {
  int64_t heads = 0;
  int64_t fewest = 0;   ///< of a head
  int64_t typical = 0;  ///< of the head of a panel, on the average over all panels
};
PanelCounts count_panels(std::span<const HeadTask> tasks, int64_t panel_rows);

/// Heads that a stream keeps bound at once, so that all its workers have something to do.
struct HeadsInFlight {
  int64_t most = 1;   ///< more would help nobody: a worker computes or binds one head at a time
  int64_t least = 1;  ///< with fewer, some workers wait for panels most of the time
};
HeadsInFlight heads_in_flight(const PanelCounts& panels, int64_t workers);

/// Hands out a stream's panels to the workers that ask for them, and has the same workers bind the
/// heads: each takes the first panel that is ready, or binds the next head where none is, and ahead
/// of that where fewer panels are left than there are workers. Keeps at most `bound_heads` heads:
/// the memory of a head is freed with its last panel, before another one is bound. Thread-safe;
/// borrows tasks and backend.
///
/// Heads are bound in order, several at once, and of those that are bound the first has its panels
/// taken first. So with in_order results may wait for earlier ones: whoever bound a head goes on
/// with the first panel that is ready, and only then returns with a later one.
class PanelQueue {
 public:
  PanelQueue(std::span<const HeadTask> tasks, const TileBackend& backend,
             const PanelQueueOptions& options);

  /// The next panel, as soon as its head is bound, perhaps by this call; nothing when none is left
  /// or the queue is closed. What binding throws comes out.
  std::optional<Panel> take();
  /// The panel has been consumed. Every panel that was taken is finished, unless the queue was
  /// closed meanwhile.
  void finish(const Panel& panel);

  /// No more panels are handed out; whoever waits returns. May be called at any time, repeatedly.
  void close() noexcept;
  /// Closes the queue because of `error`; the first one counts.
  void fail(std::exception_ptr error) noexcept;
  /// Rethrows the first failure. Called when no other thread uses the queue any more.
  void rethrow_failure() const;
  /// True where every panel there was has been finished, and no task is left. Called likewise.
  bool is_used_up() const { return all_given_ && heads_.empty(); }

 private:
  struct Head {
    std::unique_ptr<BoundHead> bound;
    std::unique_ptr<BoundValues> values;
    std::unique_ptr<BoundNorms> norms;
    int64_t panels = 0;
    int64_t taken = 0;
    int64_t unfinished = 0;
    bool backwards = false;  ///< the last panel goes first
  };

  bool wants_head(bool just_bound) const;
  std::optional<int64_t> next_task(std::unique_lock<std::mutex>& lock);
  bool is_closed();
  void bind_next(std::unique_lock<std::mutex>& lock);
  Panel take_ready();

  const std::span<const HeadTask> tasks_;
  const TileBackend& backend_;
  const PanelQueueOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Head> heads_;  ///< by task: those that are bound or being bound
  int64_t kept_heads_ = 0;         ///< these, and those that are asked for
  int64_t next_to_bind_ = 0;       ///< where nobody else says it
  bool asking_ = false;            ///< next_task is being called
  bool all_given_ = false;         ///< no task is left to bind
  int64_t ready_ = 0;              ///< panels of bound heads that nobody took
  int64_t coming_ = 0;             ///< panels of heads that are being bound
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace attnscope
