#include "io/helper/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>

#include "core/base/error.h"
#include "io/helper/helper_server.h"

namespace attnscope {
namespace {

using std::chrono::nanoseconds;

/// How often we look whether a helper that says nothing gets anywhere.
constexpr std::chrono::milliseconds kHelperLook{50};

/// Owns the settings for posix_spawn, which need freeing.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    posix_spawn_file_actions_init(&files_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_adddup2(&files_, socket, STDIN_FILENO);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
      if (kHelperIsSanitized && output == STDERR_FILENO) continue;
      posix_spawn_file_actions_addopen(&files_, output, "/dev/null", O_WRONLY, 0);
    }
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    // Whoever ends a run by a signal to all of its processes, as batch systems do, means its
    // parent, whose end is the helper's.
    sigemptyset(&signals);
    for (const int number : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals, number);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

Error start_error(const std::string& program, const std::string& purpose, int error_number) {
  if (error_number == EAGAIN) {
    return Error(ErrorCode::resource, purpose +
                                          ": the system starts no process for it: it has as many "
                                          "as it may have (ulimit -u)");
  }
  const bool scarce = error_number == ENOMEM || error_number == EMFILE || error_number == ENFILE;
  return Error(scarce ? ErrorCode::resource : ErrorCode::unavailable,
               purpose + ": no process can be started for it (program " + program +
                   "): " + errno_text(error_number));
}

/// Sends what the socket takes of `question`, which then begins behind it, and appends what has
/// come to `bytes`. False where the other end is gone.
bool move_bytes(int socket, std::string& question, std::string& bytes) {
  const auto in_vain = [] { return errno == EINTR || errno == EAGAIN; };
  if (!question.empty()) {
    const ssize_t sent =
        send(socket, question.data(), question.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !in_vain()) return false;
    if (sent > 0) question.erase(0, static_cast<size_t>(sent));
  }
  char buffer[65536];
  const ssize_t got = recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0) return in_vain();
  bytes.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

}  // namespace

HelperProcess::HelperProcess(const std::string& program, const std::vector<std::string>& arguments,
                             const std::string& purpose) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw start_error(program, purpose, errno);
  }
  std::vector<std::string> words{"attnscope"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnSettings settings(ends[1]);
  const int failed = posix_spawn(&process_, program.c_str(), settings.files(),
                                 settings.attributes(), argv.data(), environ);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    throw start_error(program, purpose, failed);
  }
  socket_ = ends[0];
}

HelperProcess::~HelperProcess() { end(); }

nanoseconds HelperProcess::processor_time() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

/// Sends the question as the helper takes it, and waits for a message.
HelperReply HelperProcess::exchange(std::string question, const HelperPatience& patience,
                                    const std::stop_token& stop) {
  using Kind = HelperReply::Kind;
  using Clock = std::chrono::steady_clock;
  const nanoseconds begin = processor_time();
  nanoseconds last = begin, still{};
  std::string bytes;
  while (true) {
    const auto looked = Clock::now();
    const int events = question.empty() ? POLLIN : POLLIN | POLLOUT;
    pollfd poller{socket_, static_cast<short>(events), 0};
    const bool ready = poll(&poller, 1, static_cast<int>(kHelperLook.count())) > 0;
    const nanoseconds now = processor_time();
    const auto reply = [&](Kind kind) { return HelperReply{kind, {}, now - begin}; };
    if (ready) {
      if (!move_bytes(socket_, question, bytes)) return reply(Kind::ended);
      if (auto message = unpack_message(bytes)) {
        return {Kind::message, std::move(*message), now - begin};
      }
      still = {};
      continue;
    }
    if (stop.stop_requested()) return reply(Kind::stopped);
    if (now - begin > patience.processor_time) return reply(Kind::looping);
    // A look that took far longer than it should is one in which this process was stopped, too.
    const nanoseconds looking = std::min<nanoseconds>(Clock::now() - looked, 2 * kHelperLook);
    still = now > last ? nanoseconds{} : still + looking;
    if (still > patience.standstill) return reply(Kind::standstill);
    last = now;
  }
}

HelperReply HelperProcess::await_greeting(const HelperPatience& patience,
                                          const std::stop_token& stop) {
  return exchange({}, patience, stop);
}

HelperReply HelperProcess::ask(const HelperMessage& question, const HelperPatience& patience,
                               const std::stop_token& stop) {
  HelperReply reply = exchange(pack_message(question), patience, stop);
  if (reply.kind == HelperReply::Kind::message) ++answers_;
  return reply;
}

std::optional<int> HelperProcess::end() {
  if (process_ < 0) return std::nullopt;
  close(socket_);
  int status = 0;
  // Who took notice of its end before us may have freed its number for another process.
  pid_t ended = waitpid(process_, &status, WNOHANG);
  if (ended == 0) {
    kill(process_, SIGKILL);
    do {
      ended = waitpid(process_, &status, 0);
    } while (ended < 0 && errno == EINTR);
  }
  const bool known = ended == process_;
  process_ = socket_ = -1;
  return known ? std::optional(status) : std::nullopt;
}

void HelperProcess::abandon() {
  if (socket_ >= 0) close(socket_);
  process_ = socket_ = -1;
}

}  // namespace attnscope
