#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "core/base/index_range.h"

namespace attnscope {

struct StreamProgress {
  int64_t tiles_done = 0;
  int64_t tiles_total = 0;
};

/// How a stream is watched, ended early, and spared what is there already.
struct StreamControl {
  std::stop_token stop;
  /// Called after tiles, from one thread at a time, at most every 50 ms and once at the end.
  std::function<void(const StreamProgress&)> progress;
  /// Called before a tile is computed; true skips it (a resumed export has it already).
  std::function<bool(int64_t task_index, IndexRange rows, IndexRange cols)> skip;
  /// Of a stream that several processes share: which task this one computes next
  /// (PanelQueueOptions::next_task). Empty: all of them.
  std::function<std::optional<int64_t>()> next_task = {};
};

}  // namespace attnscope
