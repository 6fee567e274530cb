#include "io/files/child_task.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>

#include "core/base/error.h"

namespace attnscope {
namespace {

// The sanitizers reserve terabytes of address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Bytes of address space in use.
int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  return file >> pages ? pages * sysconf(_SC_PAGESIZE) : 0;
}

void write_all(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

/// The first character tells what follows: 'r' a result, otherwise the code of an error.
[[noreturn]] void run_child(pid_t parent, int descriptor, const std::function<std::string()>& work,
                            const ChildLimits& limits) {
  // Nobody waits for a child whose parent is gone. The signal comes with the end of the thread that
  // forked, which is the one that waits; it does not come where that was before we asked for it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  // The parent's files are none of this process's business. Until here it has them open, however
  // long it takes to be given a processor: locks of the parent must be of a kind that ends with the
  // parent all the same (see FileLock).
  const auto kept = static_cast<unsigned>(descriptor);
  if (kept > 3) close_range(3, kept - 1, 0);
  close_range(kept + 1, ~0u, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (!kSanitized) {
    const auto bytes = static_cast<rlim_t>(address_space() + limits.memory_bytes);
    const rlimit memory{bytes, bytes};
    setrlimit(RLIMIT_AS, &memory);
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(number, SIG_DFL);
  try {
    write_all(descriptor, 'r' + work());
  } catch (const Error& error) {
    write_all(descriptor,
              static_cast<char>('0' + static_cast<int>(error.code())) + std::string(error.what()));
  } catch (const std::exception& error) {
    write_all(descriptor, static_cast<char>('0' + static_cast<int>(ErrorCode::resource)) +
                              std::string(error.what()));
  }
  _exit(0);
}

/// Everything the child writes, or nothing when it took too long.
std::optional<std::string> read_answer(int descriptor, std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::string answer;
  char buffer[65536];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd poller{descriptor, POLLIN, 0};
    const int ready = poll(&poller, 1, static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return answer;
    answer.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::string run_in_child(const std::string& name, const std::function<std::string()>& work,
                         const ChildLimits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::resource, name + ": no pipe: " + errno_text(errno));
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const int error_number = errno;
    close(ends[0]);
    close(ends[1]);
    throw Error(ErrorCode::resource, name + ": no child process: " + errno_text(error_number));
  }
  if (child == 0) {
    close(ends[0]);
    run_child(parent, ends[1], work, limits);
  }
  close(ends[1]);
  const auto answer = read_answer(ends[0], limits.time);
  close(ends[0]);
  if (!answer) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!answer) {
    throw file_error(name, "",
                     "reading it took more than " + std::to_string(limits.time.count()) +
                         " s: the file is damaged");
  }
  if (WIFSIGNALED(status) || answer->empty()) {
    throw file_error(name, "", "the library that reads it broke down: the file is damaged");
  }
  if (answer->front() == 'r') return answer->substr(1);
  throw Error(static_cast<ErrorCode>(answer->front() - '0'), answer->substr(1));
}

}  // namespace attnscope
