#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

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
};

/// Hands out a stream's panels in order, while one thread binds the heads ahead of them. Keeps at
/// most `bound_heads` heads: the memory of a head is freed with its last panel, before the next one
/// is bound. Thread-safe; borrows tasks and backend.
class PanelQueue {
 public:
  PanelQueue(std::span<const HeadTask> tasks, const TileBackend& backend, int64_t panel_rows,
             int64_t bound_heads, bool with_values = false);

  /// Binds one head after the other, as fast as they are finished; returns when all are bound or
  /// the queue is closed. What bind throws comes out.
  void bind_heads();

  /// The next panel, as soon as its head is bound; nothing when none is left or the queue is
  /// closed.
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

 private:
  struct Head {
    std::unique_ptr<BoundHead> bound;
    std::unique_ptr<BoundValues> values;
    int64_t panels = 0;
    int64_t unfinished = 0;
  };

  const std::span<const HeadTask> tasks_;
  const TileBackend& backend_;
  const int64_t panel_rows_;
  const int64_t bound_heads_;
  const bool with_values_;

  std::mutex mutex_;
  std::condition_variable head_bound_, head_freed_;
  std::vector<Head> heads_;
  int64_t kept_heads_ = 0;  ///< bound or being bound
  size_t next_head_ = 0;
  int64_t next_panel_ = 0;  ///< of next_head_
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace attnscope
