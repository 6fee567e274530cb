#include "io/files/group_sync.h"

#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace attnscope {

GroupSync::GroupSync(std::function<void()> sync, std::chrono::milliseconds within)
    : sync_(std::move(sync)), within_(within) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& failed) {
    throw Error(ErrorCode::resource,
                std::string("no thread to make the output durable: ") + failed.code().message());
  }
}

GroupSync::~GroupSync() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GroupSync::wrote() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (unsynced_) return;
  unsynced_ = true;
  due_ = std::chrono::steady_clock::now() + within_;
  changed_.notify_all();
}

void GroupSync::flush() {
  std::unique_lock lock(mutex_);
  // A sync under way began before the last writes, perhaps.
  changed_.wait(lock, [&] { return !syncing_; });
  if (unsynced_ && !failure_) sync_now(lock);
  if (failure_) std::rethrow_exception(failure_);
}

/// Syncs with the lock given back meanwhile. Nobody else may be at it.
void GroupSync::sync_now(std::unique_lock<std::mutex>& lock) {
  unsynced_ = false;
  syncing_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    sync_();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  syncing_ = false;
  if (failure) failure_ = std::move(failure);
  changed_.notify_all();
}

void GroupSync::run() {
  std::unique_lock lock(mutex_);
  while (!failure_) {
    changed_.wait(lock, [&] { return (unsynced_ && !syncing_) || stopping_ || failure_; });
    if (failure_ || !unsynced_) return;
    // A flush may take what is due away.
    const auto due = due_;
    const bool gone = changed_.wait_until(
        lock, due, [&] { return stopping_ || !unsynced_ || syncing_ || failure_; });
    if (gone && !stopping_) continue;
    if (unsynced_ && !syncing_ && !failure_) sync_now(lock);
  }
}

}  // namespace attnscope
