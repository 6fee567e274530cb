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

/// True where the mask leaves more keys a row in the task's last panel than in its first one.
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
    : tasks_(tasks), backend_(backend), options_(options) {}

/// True where this worker binds the next head now. One that has just bound one computes first.
bool PanelQueue::wants_head(bool just_bound) const {
  if (all_given_ || asking_ || kept_heads_ >= options_.bound_heads) return false;
  if (ready_ == 0) return true;
  return !just_bound && ready_ + coming_ < options_.workers;
}

/// Which task is bound next. The lock is given up while somebody else is asked.
std::optional<int64_t> PanelQueue::next_task(std::unique_lock<std::mutex>& lock) {
  const auto tasks = static_cast<int64_t>(tasks_.size());
  if (!options_.next_task) {
    const int64_t task = next_to_bind_++;
    all_given_ = next_to_bind_ >= tasks;
    return task < tasks ? std::optional(task) : std::nullopt;
  }
  asking_ = true;
  lock.unlock();
  std::optional<int64_t> task;
  try {
    task = options_.next_task();
  } catch (...) {
    lock.lock();
    asking_ = false;
    throw;
  }
  lock.lock();
  asking_ = false;
  all_given_ = !task;
  // Those who did not ask meanwhile may, or know now that there is nothing to wait for.
  changed_.notify_all();
  return task;
}

void PanelQueue::bind_next(std::unique_lock<std::mutex>& lock) {
  ++kept_heads_;
  const std::optional<int64_t> next = next_task(lock);
  if (!next) {
    --kept_heads_;
    return;
  }
  const HeadTask& task = tasks_[static_cast<size_t>(*next)];
  Head& head = heads_[*next];
  const int64_t panels = ceil_div(task.num_rows(), options_.panel_rows);
  head.panels = head.unfinished = panels;
  coming_ += panels;
  lock.unlock();
  auto bound = bind_for_rows(backend_, *task.problem, task.batch, task.head, task.num_rows());
  std::unique_ptr<BoundValues> values;
  if (options_.with_values) {
    values = std::make_unique<BoundValues>(*task.problem, task.batch, task.head);
  }
  std::unique_ptr<BoundNorms> norms;
  if (options_.norm_rows > 0) {
    norms = std::make_unique<BoundNorms>(task, *bound, backend_, options_.norm_rows,
                                         [this] { return is_closed(); });
  }
  const bool backwards = !options_.in_order && grows(task, panels, options_.panel_rows);
  lock.lock();
  coming_ -= panels;
  ready_ += panels;
  head.backwards = backwards;
  head.values = std::move(values);
  head.norms = std::move(norms);
  head.bound = std::move(bound);
  changed_.notify_all();
}

/// The first panel that is ready; there is one.
Panel PanelQueue::take_ready() {
  const auto at = std::find_if(heads_.begin(), heads_.end(), [](const auto& entry) {
    return entry.second.bound != nullptr && entry.second.taken < entry.second.panels;
  });
  Head& head = at->second;
  const int64_t place = head.taken++;
  --ready_;
  const int64_t panel = head.backwards ? head.panels - 1 - place : place;
  const HeadTask& task = tasks_[static_cast<size_t>(at->first)];
  return {at->first, panel_rows_of(task, panel, options_.panel_rows), head.bound.get(),
          head.values.get(), head.norms.get()};
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
    } else if (all_given_ && coming_ == 0) {
      return std::nullopt;
    } else {
      changed_.wait(lock);
    }
  }
  return std::nullopt;
}

void PanelQueue::finish(const Panel& panel) {
  std::unique_lock lock(mutex_);
  const auto at = heads_.find(panel.task);
  if (--at->second.unfinished > 0) return;
  Head done = std::move(at->second);
  heads_.erase(at);
  lock.unlock();
  // Its memory counts until it is freed, and freeing it holds nobody up.
  done = {};
  lock.lock();
  --kept_heads_;
  changed_.notify_all();
}

bool PanelQueue::is_closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
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
