#include "core/stream/panel_queue.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/stream/value_panels.h"

namespace attnscope {

PanelQueue::PanelQueue(std::span<const HeadTask> tasks, const TileBackend& backend,
                       int64_t panel_rows, int64_t bound_heads, bool with_values)
    : tasks_(tasks),
      backend_(backend),
      panel_rows_(panel_rows),
      bound_heads_(bound_heads),
      with_values_(with_values),
      heads_(tasks.size()) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    heads_[i].panels = heads_[i].unfinished = ceil_div(tasks[i].num_rows(), panel_rows);
  }
}

void PanelQueue::bind_heads() {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    {
      std::unique_lock lock(mutex_);
      head_freed_.wait(lock, [&] { return closed_ || kept_heads_ < bound_heads_; });
      if (closed_) return;
      ++kept_heads_;
    }
    const HeadTask& task = tasks_[i];
    auto bound = backend_.bind(*task.problem, task.batch, task.head);
    std::unique_ptr<BoundValues> values;
    if (with_values_) {
      values = std::make_unique<BoundValues>(*task.problem, task.batch, task.head);
    }
    const std::lock_guard lock(mutex_);
    heads_[i].values = std::move(values);
    heads_[i].bound = std::move(bound);
    head_bound_.notify_all();
  }
}

std::optional<Panel> PanelQueue::take() {
  std::unique_lock lock(mutex_);
  head_bound_.wait(lock, [&] {
    return closed_ || next_head_ == heads_.size() || heads_[next_head_].bound != nullptr;
  });
  if (closed_ || next_head_ == heads_.size()) return std::nullopt;
  const size_t task = next_head_;
  const int64_t begin = next_panel_ * panel_rows_;
  const IndexRange rows{begin, std::min(begin + panel_rows_, tasks_[task].num_rows())};
  if (++next_panel_ == heads_[task].panels) {
    ++next_head_;
    next_panel_ = 0;
    // Those who waited for this head's successor may now have nothing to wait for.
    head_bound_.notify_all();
  }
  return Panel{static_cast<int64_t>(task), rows, heads_[task].bound.get(),
               heads_[task].values.get()};
}

void PanelQueue::finish(const Panel& panel) {
  std::unique_lock lock(mutex_);
  Head& head = heads_[static_cast<size_t>(panel.task)];
  if (--head.unfinished > 0) return;
  std::unique_ptr<BoundHead> done = std::move(head.bound);
  std::unique_ptr<BoundValues> values = std::move(head.values);
  lock.unlock();
  // Its memory counts until it is freed, and freeing it holds nobody up.
  done.reset();
  values.reset();
  lock.lock();
  --kept_heads_;
  head_freed_.notify_one();
}

void PanelQueue::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  head_bound_.notify_all();
  head_freed_.notify_all();
}

void PanelQueue::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  closed_ = true;
  head_bound_.notify_all();
  head_freed_.notify_all();
}

void PanelQueue::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace attnscope
