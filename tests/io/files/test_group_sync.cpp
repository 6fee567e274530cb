#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "io/files/group_sync.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace std::chrono_literals;

namespace {

/// Stands for a disk: what was written, and what of it a sync made durable. Thread-safe.
class FakeDisk {
 public:
  void write() {
    const std::lock_guard lock(mutex_);
    ++written_;
  }
  void sync() {
    std::unique_lock lock(mutex_);
    ++syncs_;
    if (fails_) throw std::runtime_error("disk broken");
    durable_ = written_;
    changed_.notify_all();
  }
  void break_down() {
    const std::lock_guard lock(mutex_);
    fails_ = true;
  }
  /// Waits until `count` writes are durable; false after 20 s.
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return durable_ >= count; });
  }
  int durable() const {
    const std::lock_guard lock(mutex_);
    return durable_;
  }
  int syncs() const {
    const std::lock_guard lock(mutex_);
    return syncs_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int written_ = 0, durable_ = 0, syncs_ = 0;
  bool fails_ = false;
};

}  // namespace

TEST_CASE("many writes share a sync, and a flush leaves none out") {
  FakeDisk disk;
  GroupSync group([&] { disk.sync(); }, 1h);
  for (int i = 0; i < 10'000; ++i) {
    disk.write();
    group.wrote();
  }
  CHECK(disk.syncs() == 0);
  group.flush();
  CHECK(disk.durable() == 10'000);
  CHECK(disk.syncs() == 1);
  // There is nothing to do.
  group.flush();
  CHECK(disk.syncs() == 1);
}

TEST_CASE("a write becomes durable by itself") {
  FakeDisk disk;
  GroupSync group([&] { disk.sync(); }, 5ms);
  for (int i = 1; i <= 3; ++i) {
    disk.write();
    group.wrote();
    REQUIRE(disk.wait_for(i));
  }
}

TEST_CASE("what is written while a sync runs is synced by the next one") {
  FakeDisk disk;
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false;
  bool go_on = false;
  GroupSync group(
      [&] {
        disk.sync();
        std::unique_lock lock(mutex);
        entered = true;
        changed.notify_all();
        changed.wait_for(lock, 20s, [&] { return go_on; });
      },
      1ms);
  disk.write();
  group.wrote();
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, 20s, [&] { return entered; }));
  }
  disk.write();
  group.wrote();
  {
    const std::lock_guard lock(mutex);
    go_on = true;
  }
  changed.notify_all();
  group.flush();
  CHECK(disk.durable() == 2);
  CHECK(disk.syncs() == 2);
}

TEST_CASE("the end makes durable what is not") {
  FakeDisk disk;
  {
    GroupSync group([&] { disk.sync(); }, 1h);
    disk.write();
    group.wrote();
  }
  CHECK(disk.durable() == 1);
}

TEST_CASE("a sync that failed is told of at every later call, and not tried again") {
  FakeDisk disk;
  GroupSync group([&] { disk.sync(); }, 1h);
  disk.write();
  group.wrote();
  disk.break_down();
  CHECK_THROWS_WITH(group.flush(), "disk broken");
  CHECK_THROWS_WITH(group.wrote(), "disk broken");
  CHECK_THROWS_WITH(group.flush(), "disk broken");
  CHECK(disk.syncs() == 1);
}

TEST_CASE("threads that write and flush at once lose nothing") {
  FakeDisk disk;
  GroupSync group([&] { disk.sync(); }, 1ms);
  constexpr int kThreads = 4;
  constexpr int kWrites = 300;
  std::atomic<int> lost{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 1; i <= kWrites; ++i) {
          disk.write();
          group.wrote();
          if (i % 10 != 0) continue;
          group.flush();
          if (disk.durable() < i) ++lost;
        }
      });
    }
  }
  group.flush();
  CHECK(lost == 0);
  CHECK(disk.durable() == kThreads * kWrites);
}
