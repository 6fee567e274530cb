// The helper process: what it is started as, how it ends, and on whom its failures are blamed.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/files/file_lock.h"
#include "io/files/json_types.h"
#include "io/helper/ask_helper.h"
#include "tests/io/helper/test_questions.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/waiting.h"

using namespace attnscope;
using namespace attnscope::test;
using namespace std::chrono_literals;

namespace {

void use_helper(std::chrono::milliseconds processor_time = 30s,
                std::chrono::milliseconds standstill = 60s) {
  set_helper_program({helper_program(), {}, processor_time, standstill});
}

std::string error_of(ErrorCode code, const HelperQuestion& question, const Json& arguments = {}) {
  return thrown_text(code, [&] { ask_helper(question, "a.h5", arguments); });
}

pid_t helper_process() { return ask_helper(kProcess, "a.h5").get<pid_t>(); }

/// The letter by which the system tells what a process does; ' ' where there is none.
char process_state(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos ? ' ' : line[name_end + 2];
}

/// Stops it, as a machine does that has no time for it.
void halt(pid_t process) {
  REQUIRE(kill(process, SIGSTOP) == 0);
  REQUIRE(becomes([&] { return process_state(process) == 'T'; }));
}

/// The number that a helper wrote to the file once it began to compute.
pid_t process_in(const std::string& file) {
  REQUIRE(becomes([&] { return std::filesystem::exists(file); }));
  pid_t process = -1;
  std::ifstream(file) >> process;
  return process;
}

}  // namespace

TEST_CASE("a helper answers one question after the other") {
  use_helper();
  const Json arguments{{"text", "\u00fc"}, {"numbers", {1, 2.5}}};
  CHECK(ask_helper(kEcho, "a.h5", arguments) == arguments);
  const pid_t process = helper_process();
  const std::string large(3 << 20, 'x');
  CHECK(ask_helper(kEcho, "a.h5", large) == large);
  CHECK(helper_process() == process);
  CHECK(process != getpid());
}

TEST_CASE("a helper's errors keep their kind, and it is replaced") {
  use_helper();
  for (const ErrorCode code : {ErrorCode::usage, ErrorCode::file, ErrorCode::value,
                               ErrorCode::resource, ErrorCode::unavailable}) {
    CHECK(error_of(code, kThrow, {{"code", static_cast<int>(code)}}) == "a.h5: here: is odd");
  }
  CHECK(error_of(ErrorCode::file, kThrow, {{"code", -1}}) ==
        "a.h5: what it holds cannot be: the file is damaged");
  const HelperQuestion unknown{"unknown", nullptr};
  CHECK(error_of(ErrorCode::unavailable, unknown).find("does not know unknown") !=
        std::string::npos);
  CHECK(ask_helper(kEcho, "a.h5", 1) == 1);
}

TEST_CASE("a helper begins clean: no files, no signals, a group of its own") {
  const TemporaryFolder folder;
  // Opened as libraries may do that do not think of other programs.
  const int inherited = open((folder / "inherited").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(inherited > 2);
  sigset_t signals, before;
  sigfillset(&signals);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &signals, &before) == 0);
  const auto handler = signal(SIGPIPE, SIG_IGN);
  use_helper();
  const Json state = ask_helper(kState, "a.h5");
  signal(SIGPIPE, handler);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  close(inherited);
  INFO(state.dump());
  REQUIRE(state["files"].size() == 3);
  CHECK(state["files"][0].get<std::string>().starts_with("socket:"));
  CHECK(state["files"][1] == "/dev/null");
  if (!sanitized()) CHECK(state["files"][2] == "/dev/null");
  // SIGHUP, SIGINT and SIGTERM are its parent's to answer.
  CHECK(state["blocked"] == "0000000000004003");
  // Two of the signals are the C library's own, which nobody else can set.
  constexpr uint64_t kOwn = uint64_t{3} << 31;
  CHECK((std::stoull(state["ignored"].get<std::string>(), nullptr, 16) & ~kOwn) == 0);
  // Ctrl-C at the terminal goes to the group in the foreground.
  CHECK(state["group"] != getpgrp());
}

TEST_CASE("a helper finds files from the folder that its parent is in") {
  use_helper();
  const TemporaryFolder folder;
  std::ofstream(folder / "five") << "12345";
  CHECK(ask_helper(kFileSize, folder / "five") == 5);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Json size = ask_helper(kFileSize, "five");
  std::filesystem::current_path(before);
  CHECK(size == 5);
}

TEST_CASE("a helper that crashes is the file's fault, one that is killed the machine's") {
  use_helper();
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE}) {
    INFO("signal " << number);
    CHECK(error_of(ErrorCode::file, kRaise, number) ==
          "a.h5: the library that reads it broke down: the file is damaged");
  }
  CHECK(error_of(ErrorCode::file, kLeave) ==
        "a.h5: the library that reads it broke down: the file is damaged");
  CHECK(error_of(ErrorCode::file, kGarbage) ==
        "a.h5: the library that reads it broke down: the file is damaged");
  CHECK(error_of(ErrorCode::resource, kRaise, SIGKILL) ==
        "a.h5: the process that read it was killed from outside (signal 9), as systems do that run "
        "out of memory: nothing is known against the file; try again");
}

TEST_CASE("a helper that was killed between two questions is replaced") {
  use_helper();
  const pid_t process = helper_process();
  REQUIRE(kill(process, SIGKILL) == 0);
  const pid_t other = helper_process();
  CHECK(other != process);
  CHECK(process_state(process) == ' ');
}

TEST_CASE("a helper may not take more than its memory") {
  if (sanitized()) return;  // no limit of address space there
  use_helper();
  CHECK(ask_helper(kTakeBytes, "a.h5", 64 << 20) == 64 << 20);
  CHECK(error_of(ErrorCode::resource, kTakeBytes, int64_t{2} << 30)
            .find("takes more than 1 GiB of memory") != std::string::npos);
}

TEST_CASE(
    "a helper that computes without an end is the file's fault, and has one patience for all") {
  use_helper(2s);
  CHECK(error_of(ErrorCode::file, kCompute) ==
        "a.h5: reading it took more than 2 s of processor time: the file is damaged");
  // Another second, which every question has: told is what has gone for this file.
  CHECK(error_of(ErrorCode::file, kCompute).find("more than 3 s") != std::string::npos);
  CHECK(ask_helper(kEcho, "a.h5", 1) == 1);
}

TEST_CASE("the time of a file that spoils two helpers is told as a whole") {
  use_helper(4s);
  CHECK(ask_helper(kEcho, "good.h5", 1) == 1);
  // A quarter for the helper that has read another file, then what is left for a new one.
  CHECK(error_of(ErrorCode::file, kCompute).find("more than 4 s of processor time") !=
        std::string::npos);
}

TEST_CASE("a file has seconds, not half a minute, of a helper that computes") {
  CHECK(HelperProgram{}.processor_time <= 8s);
}

TEST_CASE("a slow machine is not the file's fault: time counts only where the helper computes") {
  use_helper(1s, 30s);
  CHECK(ask_helper(kNap, "a.h5", {{"naps", 150}}) == "slept");
}

TEST_CASE("a helper that is given no processor is waited for, and then the machine is blamed") {
  use_helper(30s, 1s);
  halt(helper_process());
  const std::string text = error_of(ErrorCode::resource, kEcho);
  CHECK(
      text.starts_with("a.h5: reading it stood still for 1 s (after 0.00 s of processor time): "
                       "the machine is busy"));
  CHECK(text.ends_with("nothing is known against the file; try again"));
  // The next one finds another.
  CHECK(ask_helper(kEcho, "a.h5", 1) == 1);

  use_helper();
  const pid_t process = helper_process();
  halt(process);
  std::atomic<bool> asking{false};
  Json answer;
  std::thread thread([&] {
    asking = true;
    answer = ask_helper(kEcho, "a.h5", 2);
  });
  REQUIRE(becomes([&] { return asking.load(); }));
  REQUIRE(kill(process, SIGCONT) == 0);
  thread.join();
  CHECK(answer == 2);
  CHECK(helper_process() == process);
}

TEST_CASE("a stop ends the waiting for a helper") {
  use_helper();
  const TemporaryFolder folder;
  std::stop_source source;
  std::string text;
  std::thread thread([&] {
    text = thrown_text(ErrorCode::interrupted, [&] {
      ask_helper(kCompute, "a.h5", folder / "process", source.get_token());
    });
  });
  const pid_t process = process_in(folder / "process");
  source.request_stop();
  thread.join();
  CHECK(text == "interrupted while reading a.h5");
  CHECK(process_state(process) == ' ');
}

TEST_CASE("what an earlier file spoilt in a helper counts against no other") {
  for (const std::string how : {"crash", "throw", "compute"}) {
    INFO(how);
    use_helper(4s);
    ask_helper(kSpoil, "bad.h5");
    CHECK(ask_helper(kFragile, "good.h5", how) == "well");
  }
}

TEST_CASE("where no helper can be started, the error says so") {
  set_helper_program({"/no/such/program", {}});
  CHECK(error_of(ErrorCode::unavailable, kEcho) ==
        "a.h5: it is read in a process of its own: no process can be started for it (program "
        "/no/such/program): No such file or directory");
  for (const char* other : {"/bin/true", "/bin/cat"}) {
    INFO(other);
    set_helper_program({other, {}, 30s, 1s});
    const bool waits = std::string(other) == "/bin/cat";
    const std::string text = error_of(waits ? ErrorCode::resource : ErrorCode::unavailable, kEcho);
    CHECK(text.find(waits ? "stood still for 1 s" : "/bin/true does not serve as one") !=
          std::string::npos);
  }
  use_helper();
}

TEST_CASE("a helper starts beside threads that are busy with memory, and serves several") {
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!done)
        std::string(1 + static_cast<size_t>(rand() % 100'000), 'x')
            .swap(*std::make_unique<std::string>());
    });
  }
  std::atomic<int> right{0};
  for (int round = 0; round < 10; ++round) {
    use_helper();
    std::vector<std::thread> asking;
    for (int i = 0; i < 3; ++i) {
      asking.emplace_back([&, i] {
        if (ask_helper(kEcho, "a.h5", i) == i) ++right;
      });
    }
    for (std::thread& thread : asking) thread.join();
  }
  done = true;
  for (std::thread& thread : busy) thread.join();
  CHECK(right == 30);
}

TEST_CASE("a process that is forked from the helper's parent has a helper of its own") {
  use_helper();
  const pid_t process = helper_process();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(helper_process() == process ? 1 : 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(helper_process() == process);
}

TEST_CASE("a killed run leaves no helper, however busy, and no lock") {
  const TemporaryFolder folder;
  const std::string lock_path = folder / "lock", process_path = folder / "process";
  // Who the run leaves behind becomes ours.
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  const pid_t run = fork();
  REQUIRE(run >= 0);
  if (run == 0) {
    use_helper();
    const FileLock lock(lock_path, "out.h5");
    ask_helper(kCompute, "a.h5", process_path);
    _exit(0);
  }
  const pid_t helper = process_in(process_path);
  REQUIRE(kill(run, SIGKILL) == 0);
  int status = 0;
  REQUIRE(waitpid(run, &status, 0) == run);
  CHECK_FALSE(FileLock::is_held(lock_path));
  CHECK(thrown_text(ErrorCode::file, [&] { FileLock lock(lock_path, "out.h5"); }).empty());
  pid_t ended = 0;
  CHECK(becomes([&] { return (ended = waitpid(helper, &status, WNOHANG)) != 0; }));
  CHECK(ended == helper);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}
