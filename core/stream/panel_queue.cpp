#include "core/stream/panel_queue.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/stream/few_rows.h"
#include "core/stream/panel.h"
#include "core/stream/value_panels.h"

namespace attnscope {
namespace {

IndexRange panel_rows_of(const HeadTask& task, int64_t panel, int64_t panel_rows) {
  const int64_t begin = panel * panel_rows;
  return {begin, std::min(begin + panel_rows, task.num_rows())};
}

/// Whether the mask leaves more keys of the task's last panel than of its first one, a row.
bool grows(const HeadTask& task, int64_t panels, int64_t panel_rows) {
  if (panels < 2 || task.problem->mask().is_none()) return false;
  // The mask is asked for so many keys at a time: it has to tell about a panel's worth, and not to
  // be asked for long.
  const int64_t step = std::max(panel_rows, task.problem->num_keys() / 64);
  const auto keys_a_row = [&](int64_t panel) {
    const IndexRange rows = panel_rows_of(task, panel, panel_rows);
    return static_cast<double>(unmasked_entries(task, rows, step)) /
           static_cast<double>(rows.size());
  };
  return keys_a_row(panels - 1) > keys_a_row(0);
}

}  // namespace

PanelCounts count_panels(std::span<const HeadTask> tasks, int64_t panel_rows) {
  PanelCounts counts{static_cast<int64_t>(tasks.size()), std::numeric_limits<int64_t>::max(), 0};
  double panels = 0;
  double squares = 0;
  for (const HeadTask& task : tasks) {
    const int64_t count = ceil_div(task.num_rows(), panel_rows);
    counts.fewest = std::min(counts.fewest, count);
    panels += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  counts.typical = static_cast<int64_t>(squares / panels);
  return counts;
}

HeadsInFlight heads_in_flight(const PanelCounts& panels, int64_t workers) {
  // As many as the workers compute panels of, and as many again whose last panels are awaited or
  // that are being bound.
  const int64_t busy = std::min(workers, 2 * ceil_div(workers, panels.fewest));
  const int64_t most = std::min(panels.heads, busy);
  return {most, std::min(most, ceil_div(workers, panels.typical))};
}

PanelQueue::PanelQueue(std::span<const HeadTask> tasks, const TileBackend& backend,
                       const PanelQueueOptions& options)
    : tasks_(tasks), backend_(backend), options_(options), heads_(tasks.size()) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    heads_[i].panels = heads_[i].unfinished = ceil_div(tasks[i].num_rows(), options.panel_rows);
  }
}

/// Whether this worker binds the next head now. One that has just bound one computes first.
bool PanelQueue::wants_head(bool just_bound) const {
  if (next_to_bind_ == heads_.size() || kept_heads_ >= options_.bound_heads) return false;
  if (ready_ == 0) return true;
  return !just_bound && ready_ + coming_ < options_.workers;
}

void PanelQueue::bind_next(std::unique_lock<std::mutex>& lock) {
  const size_t i = next_to_bind_++;
  const HeadTask& task = tasks_[i];
  ++kept_heads_;
  coming_ += heads_[i].panels;
  lock.unlock();
  auto bound = bind_for_rows(backend_, *task.problem, task.batch, task.head, task.num_rows());
  std::unique_ptr<BoundValues> values;
  if (options_.with_values) {
    values = std::make_unique<BoundValues>(*task.problem, task.batch, task.head);
  }
  const bool backwards = !options_.in_order && grows(task, heads_[i].panels, options_.panel_rows);
  lock.lock();
  coming_ -= heads_[i].panels;
  ready_ += heads_[i].panels;
  heads_[i].backwards = backwards;
  heads_[i].values = std::move(values);
  heads_[i].bound = std::move(bound);
  changed_.notify_all();
}

/// The first panel that is ready; there is one.
Panel PanelQueue::take_ready() {
  const auto has_one = [](const Head& head) {
    return head.bound != nullptr && head.taken < head.panels;
  };
  while (heads_[first_left_].taken == heads_[first_left_].panels) ++first_left_;
  size_t i = first_left_;
  while (!has_one(heads_[i])) ++i;
  Head& head = heads_[i];
  const int64_t place = head.taken++;
  --ready_;
  const int64_t panel = head.backwards ? head.panels - 1 - place : place;
  return {static_cast<int64_t>(i), panel_rows_of(tasks_[i], panel, options_.panel_rows),
          head.bound.get(), head.values.get()};
}

std::optional<Panel> PanelQueue::take() {
  std::unique_lock lock(mutex_);
  bool just_bound = false;
  while (!closed_) {
    if (wants_head(just_bound)) {
      bind_next(lock);
      just_bound = true;
    } else if (ready_ > 0) {
      const Panel panel = take_ready();
      // Those who wait for more may now have nothing to wait for, or a head to bind.
      if (ready_ == 0) changed_.notify_all();
      return panel;
    } else if (next_to_bind_ == heads_.size() && coming_ == 0) {
      return std::nullopt;
    } else {
      changed_.wait(lock);
    }
  }
  return std::nullopt;
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
  changed_.notify_all();
}

void PanelQueue::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void PanelQueue::fail(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  closed_ = true;
  changed_.notify_all();
}

void PanelQueue::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace attnscope
