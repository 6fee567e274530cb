#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Compares a capture with a few of its own recorded outputs, on a thread of its own, as soon as it
/// is made. Thread-safe; ends soon when it is destroyed.
class QuickCheck {
 public:
  /// Borrows the capture and the backend, which computes in `memory` bytes. `finished` is called
  /// from the thread, once.
  QuickCheck(const Capture& capture, const TileBackend& backend, int64_t memory,
             std::function<void()> finished);
  bool done() const { return done_; }
  /// The outputs that do not agree, one line; empty where all of them do, or before it is done.
  std::string warning() const { return done_ ? warning_ : std::string(); }

 private:
  void run(std::stop_token stop);

  const Capture& capture_;
  const TileBackend& backend_;
  MemoryBudget budget_;
  const std::function<void()> finished_;
  std::string warning_;  ///< written before done_ is set
  std::atomic<bool> done_{false};
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace attnscope
