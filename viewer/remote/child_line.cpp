#include "viewer/remote/child_line.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <string_view>
#include <thread>

#include "core/base/control_characters.h"
#include "core/base/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace attnscope {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorCode::resource, "pipe: " + errno_text(errno));
    }
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take(size_t end) { return std::exchange(ends[end], -1); }
};

struct Actions {
  posix_spawn_file_actions_t actions{};
  Actions() { ::posix_spawn_file_actions_init(&actions); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

/// Without blocked signals, whatever this thread has.
struct Attributes {
  posix_spawnattr_t attributes{};
  Attributes() {
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
};

void write_whole(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put <= 0) return;
    text.remove_prefix(static_cast<size_t>(put));
  }
}

/// How long a program may take to end after its input has, and after a signal.
constexpr auto kPatience = std::chrono::milliseconds(1500);

}  // namespace

ChildLine::ChildLine(const std::vector<std::string>& words) {
  Pipe input, output, complaints;
  Actions files;
  ::posix_spawn_file_actions_adddup2(&files.actions, input.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files.actions, output.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files.actions, complaints.ends[1], STDERR_FILENO);
  const Attributes how;
  std::vector<std::string> own = words;
  std::vector<char*> arguments;
  for (std::string& word : own) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&child_, own.front().c_str(), &files.actions, &how.attributes,
                                   arguments.data(), environ);
  if (error != 0) {
    child_ = -1;
    throw Error(ErrorCode::unavailable,
                one_line(own.front()) + " cannot be started: " + errno_text(error));
  }
  line_ = std::make_unique<ByteLine>(output.take(0), input.take(1));
  complaints_ = std::make_unique<ByteLine>(complaints.take(0), -1);
}

ChildLine::~ChildLine() {
  if (child_ < 0) return;
  line_->close_out();
  if (code_ < 0 && exit_code() < 0) ::kill(child_, SIGTERM);
  if (code_ < 0 && exit_code() < 0) ::kill(child_, SIGKILL);
  while (code_ < 0 && ::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildLine::hand_on() {
  if (!complaints_) return;
  const bool more = complaints_->wait(0);
  complained_ = complaints_->total_received();
  std::string& all = complaints_->received();
  // A character that is not whole yet could be half of one that steers the terminal.
  const std::string came = all.substr(0, more ? whole_characters(all) : all.size());
  write_whole(STDERR_FILENO, lines_without_controls(came));
  for (const char c : came) {
    if (c != '\n' && c != '\r') {
      if (unfinished_.size() < 1000) unfinished_ += c;
      continue;
    }
    if (!unfinished_.empty()) last_line_ = std::exchange(unfinished_, {});
  }
  all.erase(0, came.size());
  if (!more) complaints_.reset();
}

bool ChildLine::wait(double seconds, int wake) {
  const bool going_on = line_->wait(seconds, wake);
  hand_on();
  return going_on;
}

std::string ChildLine::complaint() const { return unfinished_.empty() ? last_line_ : unfinished_; }

int ChildLine::exit_code() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (code_ < 0) {
    int status = 0;
    const pid_t ended = ::waitpid(child_, &status, WNOHANG);
    if (ended == child_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (ended < 0 && errno != EINTR) {
      code_ = 0;  // somebody else has waited for it
    } else if (std::chrono::steady_clock::now() >= until) {
      break;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  hand_on();
  return code_;
}

}  // namespace attnscope
