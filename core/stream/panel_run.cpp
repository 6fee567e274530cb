#include "core/stream/panel_run.h"

#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/start_thread.h"

namespace attnscope {

void run_panels(PanelQueue& queue, const PanelRun& run) {
  const auto abort = [&]() noexcept {
    if (run.abort) run.abort();
  };
  // Runs `body` and turns what it throws into the queue's failure.
  const auto guarded = [&](const auto& body) noexcept {
    try {
      body();
    } catch (...) {
      queue.fail(std::current_exception());
      abort();
    }
  };
  {
    const std::stop_callback on_stop(run.stop, [&] {
      queue.close();
      abort();
    });
    const auto work = [&] {
      guarded([&] {
        const std::unique_ptr<PanelWorker> worker = run.make_worker();
        while (const auto panel = queue.take()) {
          worker->run(*panel);
          queue.finish(*panel);
        }
      });
    };
    std::vector<std::jthread> threads;
    guarded([&] {
      const auto wanted = static_cast<size_t>(run.workers);
      while (threads.size() < wanted) start_thread(threads, wanted, work);
    });
  }  // joins
  try {
    queue.rethrow_failure();
  } catch (const Error& error) {
    // Readers and sinks that a stop ended say so by an exception; it ends the stream like any stop.
    if (error.code() != ErrorCode::interrupted || !run.stop.stop_requested()) throw;
  }
}

}  // namespace attnscope
