#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "core/stream/panel_queue.h"

namespace attnscope {

/// Computes panels in memory of its own. Used by one thread.
class PanelWorker {
 public:
  virtual ~PanelWorker() = default;
  virtual void run(const Panel& panel) = 0;
};

/// How a stream's panels are computed, whatever becomes of them.
struct PanelRun {
  int workers = 1;
  std::stop_token stop = {};
  /// Called once by every worker's thread.
  std::function<std::unique_ptr<PanelWorker>()> make_worker;
  /// Called when some panels will never be computed, after a failure or a stop: from any thread,
  /// perhaps more than once, must not throw. May be empty.
  std::function<void()> abort = {};
};

/// The loop of every stream: workers take panels of the queue, which has them bind the heads.
/// Returns when all panels are computed, or after a stop when those under way are,
/// or have thrown Error(interrupted); rethrows the first other failure of a worker or of binding.
/// The queue is used up.
void run_panels(PanelQueue& queue, const PanelRun& run);

}  // namespace attnscope
