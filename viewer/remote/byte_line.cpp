#include "viewer/remote/byte_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr size_t kPiece = size_t{64} << 10;

void set_non_blocking(int descriptor) {
  if (descriptor < 0) return;
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0) ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

bool is_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

/// A write to who has gone is an error of that write, not this process's end.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~NoPipeSignal() {
    if (!was_pending_) {
      sigset_t pipe;
      ::sigemptyset(&pipe);
      ::sigaddset(&pipe, SIGPIPE);
      const timespec at_once{};
      while (::sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

ByteLine::ByteLine(int in, int out) : in_(in), out_(out) {
  set_non_blocking(in_);
  set_non_blocking(out_);
}

ByteLine::~ByteLine() {
  close_out();
  if (in_ >= 0) ::close(in_);
}

void ByteLine::close_out() {
  if (out_ >= 0 && out_ != in_) ::close(out_);
  out_ = -1;
  unsent_.clear();
  sent_ = 0;
}

bool ByteLine::read_some() {
  std::array<char, kPiece> piece;
  while (received_.size() < most_received_) {
    const ssize_t got = ::read(in_, piece.data(), piece.size());
    if (got > 0) {
      received_.append(piece.data(), static_cast<size_t>(got));
      total_received_ += static_cast<size_t>(got);
      if (static_cast<size_t>(got) < piece.size()) return true;
      continue;
    }
    if (got < 0 && is_later(errno)) return true;
    if (got < 0) problem_ = errno_text(errno);
    return false;
  }
  return true;
}

bool ByteLine::write_some() {
  const NoPipeSignal quiet;
  while (sent_ < unsent_.size()) {
    const ssize_t put = ::write(out_, unsent_.data() + sent_, unsent_.size() - sent_);
    if (put >= 0) {
      sent_ += static_cast<size_t>(put);
      continue;
    }
    if (is_later(errno)) break;
    if (errno != EPIPE) problem_ = errno_text(errno);
    return false;
  }
  if (sent_ == unsent_.size() || sent_ > kPiece * 16) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  return true;
}

bool ByteLine::wait(double seconds, int wake) {
  if (out_ >= 0 && unsent() > 0 && !write_some()) return false;
  std::array<pollfd, 3> all{};
  nfds_t count = 0;
  const auto add = [&](int descriptor, short events) { all[count++] = {descriptor, events, 0}; };
  if (in_ >= 0 && received_.size() < most_received_) add(in_, POLLIN);
  if (out_ >= 0 && unsent() > 0) add(out_, POLLOUT);
  if (wake >= 0) add(wake, POLLIN);
  const int milliseconds = static_cast<int>(std::clamp(std::ceil(seconds * 1e3), 0.0, 3600e3));
  if (::poll(all.data(), count, milliseconds) <= 0) return true;
  for (nfds_t i = 0; i < count; ++i) {
    if (all[i].revents == 0) continue;
    if (all[i].fd == in_ && (all[i].events & POLLIN) != 0 && !read_some()) return false;
    if (all[i].fd == out_ && (all[i].events & POLLOUT) != 0 && !write_some()) return false;
  }
  return true;
}

EventBell::EventBell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw Error(ErrorCode::resource, "eventfd: " + errno_text(errno));
}
EventBell::~EventBell() { ::close(descriptor_); }
void EventBell::ring() const {
  const uint64_t one = 1;
  // It fails where it has rung often enough already.
  [[maybe_unused]] const ssize_t put = ::write(descriptor_, &one, sizeof one);
}
bool EventBell::quiet() const {
  uint64_t rings = 0;
  return ::read(descriptor_, &rings, sizeof rings) > 0;
}

}  // namespace attnscope
