#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/files/child_task.h"
#include "io/files/file_lock.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string error_of(ErrorCode code, const std::function<std::string()>& work,
                     const ChildLimits& limits = {}) {
  return thrown_text(code, [&] { run_in_child("a.h5", work, limits); });
}

/// What a run, its child and the test see of one another.
struct Shared {
  std::atomic<pid_t> child{0};  ///< once it is there
  std::atomic<bool> go{true};   ///< it may go on
  std::atomic<bool> worked{false};
};

/// The run's; for a handler that takes no arguments.
Shared* shared_of_run = nullptr;

void wait_to_go() {
  shared_of_run->child = getpid();
  while (!shared_of_run->go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// A run, in a process of its own, that holds a lock and waits for its child, which never ends by
/// itself.
class Runner {
 public:
  /// With `slow`, the child gets no processor before `go`.
  Runner(const std::string& lock_path, bool slow) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    shared_ = new (memory) Shared;
    shared_->go = !slow;
    // Whom the run leaves behind becomes ours.
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    run_ = fork();
    REQUIRE(run_ >= 0);
    if (run_ > 0) return;
    shared_of_run = shared_;
    if (slow) pthread_atfork(nullptr, nullptr, wait_to_go);
    const FileLock lock(lock_path, "out.h5");
    run_in_child("a.h5", []() -> std::string {
      shared_of_run->child = getpid();
      shared_of_run->worked = true;
      while (true) pause();
    });
    _exit(0);
  }
  ~Runner() {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    munmap(shared_, sizeof(Shared));
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  Shared& shared() { return *shared_; }
  /// Kills the run once its child is there.
  void kill_run() {
    while (shared_->child == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(kill(run_, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(run_, &status, 0) == run_);
    REQUIRE(WIFSIGNALED(status));
  }
  /// How the child ended; −1 where it does not.
  int child_status() {
    int status = -1;
    for (int i = 0; i < 4000; ++i) {
      if (waitpid(shared_->child, &status, WNOHANG) == shared_->child) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(shared_->child, SIGKILL);
    waitpid(shared_->child, &status, 0);
    return -1;
  }

 private:
  Shared* shared_ = nullptr;
  pid_t run_ = -1;
};

}  // namespace

TEST_CASE("a killed run's lock is free at once, however slow its child is") {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  Runner runner(path, true);
  runner.kill_run();
  CHECK_FALSE(FileLock::is_held(path));
  CHECK(thrown_text(ErrorCode::file, [&] { FileLock lock(path, "out.h5"); }).empty());
  // It has not done anything yet, and does not begin when nobody waits for it.
  runner.shared().go = true;
  CHECK(runner.child_status() == 0);
  CHECK_FALSE(runner.shared().worked);
}

TEST_CASE("a child ends with its parent") {
  const TemporaryFolder folder;
  Runner runner(folder / "lock", false);
  runner.kill_run();
  const int status = runner.child_status();
  REQUIRE(status != -1);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(runner.shared().worked);
}

TEST_CASE("a child has none of its parent's files") {
  const TemporaryFolder folder;
  const FileLock lock(folder / "lock", "out.h5");
  const std::string open_files = run_in_child("a.h5", [] {
    std::string names;
    for (int number = 0; number < 1024; ++number) {
      const std::string link = "/proc/self/fd/" + std::to_string(number);
      std::error_code closed;
      const auto file = std::filesystem::read_symlink(link, closed);
      if (!closed && number > 2) names += file.string() + "\n";
    }
    return names;
  });
  // The pipe for its answer.
  CHECK(std::count(open_files.begin(), open_files.end(), '\n') == 1);
  CHECK(open_files.find("pipe:") == 0);
}

TEST_CASE("a child's result comes back whole, and its errors keep their kind") {
  CHECK(run_in_child("a.h5", [] { return std::string(); }).empty());
  const std::string large(3 << 20, 'x');
  CHECK(run_in_child("a.h5", [&] { return large; }) == large);
  CHECK(error_of(ErrorCode::usage, []() -> std::string { throw usage_error("what was asked"); }) ==
        "what was asked");
  CHECK(error_of(ErrorCode::file, []() -> std::string {
          throw file_error("a.h5", "here", "is odd");
        }) == "a.h5: here: is odd");
}

TEST_CASE("a child that hangs, crashes or takes memory is an error of the file") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string hang = error_of(ErrorCode::file,
                                    []() -> std::string {
                                      while (true) pause();
                                    },
                                    {.time = std::chrono::seconds(1)});
  CHECK(hang == "a.h5: reading it took more than 1 s: the file is damaged");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  for (const int number : {SIGSEGV, SIGABRT, SIGKILL}) {
    INFO("signal " << number);
    CHECK(error_of(ErrorCode::file, [&]() -> std::string {
            signal(number, SIG_DFL);
            raise(number);
            return "";
          }) == "a.h5: the library that reads it broke down: the file is damaged");
  }
  if (sanitized()) return;  // no limit of address space there
  const std::string large =
      error_of(ErrorCode::resource, [] { return std::string(size_t{1} << 30, 'x'); },
               {.memory_bytes = 64 << 20});
  CHECK(large.find("bad_alloc") != std::string::npos);
}
