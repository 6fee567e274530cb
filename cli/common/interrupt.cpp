#include "cli/common/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// Signals that are ignored (nohup, jobs in the background of a script) stay ignored.
sigset_t interrupt_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, number);
  }
  return signals;
}

void close_if_open(int descriptor) {
  if (descriptor >= 0) close(descriptor);
}

}  // namespace

InterruptWatch::InterruptWatch(const Console& console)
    : signals_(interrupt_signals()), source_(console.stop()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  signal_fd_ = signalfd(-1, &signals_, SFD_CLOEXEC);
  finish_fd_ = eventfd(0, EFD_CLOEXEC);
  try {
    if (signal_fd_ < 0 || finish_fd_ < 0) {
      throw Error(ErrorCode::resource, "signals cannot be watched: " + errno_text(errno));
    }
    watcher_ = std::thread([this] { watch(); });
    // Whoever has one is listened to.
    started_.wait();
  } catch (...) {
    close_if_open(finish_fd_);
    close_if_open(signal_fd_);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    throw;
  }
}

void InterruptWatch::watch() {
  started_.count_down();
  while (true) {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {finish_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof info) != sizeof info) continue;
    if (!source_.request_stop()) _exit(128 + static_cast<int>(info.ssi_signo));
  }
}

InterruptWatch::~InterruptWatch() {
  const uint64_t one = 1;
  while (write(finish_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  watcher_.join();
  close(finish_fd_);
  close(signal_fd_);
  if (!handed_on_) pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

}  // namespace attnscope
