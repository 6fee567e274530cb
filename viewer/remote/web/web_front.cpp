#include "viewer/remote/web/web_front.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "viewer/remote/web/web_visit.h"

namespace attnscope {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using Clock = std::chrono::steady_clock;

/// Taken in at once, before anybody else has a turn.
constexpr int kMostAtOnce = 16;
constexpr std::chrono::milliseconds kPause{100};

constexpr unsigned kGoingAway = 1001;
constexpr unsigned kRefused = 4400;
constexpr unsigned kTakenOver = 4409;

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

class WebFront::Hall : public WebVisit::Host {
 public:
  Hall(std::span<const int> doors, std::span<const WebAsset> page, std::string token,
       WebRules rules, const WebLimits& limits)
      : page_(page, std::move(rules)), token_(std::move(token)), limits_(limits), wake_(io_) {
    for (const int door : doors) {
      doors_.push_back(std::make_unique<Door>(io_, copy_of(door)));
      await(*doors_.back());
    }
  }
  ~Hall() override {
    if (const auto window = window_) {
      io_.restart();
      window->leave(kGoingAway, "the server has ended");
      const auto until = Clock::now() + duration_of(limits_.close_seconds);
      while (window->state() != WebVisit::State::gone && run_one(until)) {
      }
    }
    for (const auto& visit : std::exchange(strangers_, {})) visit->drop("the server has ended");
  }

  void wait(double seconds, int wake) {
    if (wake >= 0) await_wake(wake);
    const auto until = Clock::now() + duration_of(std::clamp(seconds, 0.0, 3600.0));
    stirred_ = false;
    io_.restart();
    while (!stirred_ && io_.poll_one() > 0) {
    }
    while (!stirred_ && run_one(until)) {
    }
  }
  std::shared_ptr<WebVisit> take_window() { return std::exchange(arrived_, nullptr); }
  size_t connections() const { return strangers_.size() + (window_ ? 1 : 0); }

  // Of visits:
  const WebPage& page() const override { return page_; }
  const std::string& token() const override { return token_; }
  const WebLimits& limits() const override { return limits_; }
  void opened(WebVisit& visit) override {
    size_t open = 0;
    for (const auto& each : strangers_) open += each->state() == WebVisit::State::knocking ? 1 : 0;
    if (open <= limits_.sockets) return;
    drop_oldest([&](const WebVisit& each) {
      return &each != &visit && each.state() == WebVisit::State::knocking;
    });
  }
  void proved(WebVisit& visit) override {
    const auto self = visit.shared_from_this();
    strangers_.remove(self);
    if (window_) {
      // Among those that may be dropped, while it takes leave.
      strangers_.push_back(window_);
      std::exchange(window_, nullptr)->leave(kTakenOver, "another window has taken over");
    }
    window_ = arrived_ = self;
    stirred();
  }
  void stirred() override { stirred_ = true; }
  void ended(WebVisit& visit) override {
    const auto self = visit.shared_from_this();
    strangers_.remove(self);
    if (arrived_ == self) arrived_.reset();
    if (window_ == self) {
      window_.reset();
      stirred();
    }
  }

 private:
  struct Door {
    Door(WebIo& io, int listening) : socket(io, listening), pause(io) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer pause;
  };

  static int copy_of(int descriptor) {
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) throw Error(ErrorCode::resource, "serve: " + errno_text(errno));
    return copy;
  }
  bool run_one(Clock::time_point until) { return io_.run_one_until(until) > 0; }
  void await_wake(int wake) {
    if (!wake_.is_open()) wake_.assign(copy_of(wake));
    if (std::exchange(wake_awaited_, true)) return;
    wake_.async_wait(asio::posix::stream_descriptor::wait_read, [this](Code code) {
      wake_awaited_ = false;
      if (!code) stirred();
    });
  }
  void await(Door& door) {
    door.socket.async_wait(asio::posix::stream_descriptor::wait_read, [this, &door](Code code) {
      if (!code) take_in(door);
    });
  }
  void take_in(Door& door) {
    for (int i = 0; i < kMostAtOnce; ++i) {
      const int made =
          ::accept4(door.socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (made >= 0) {
        welcome(made);
        continue;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return rest(door);
      }
      // Who came has gone again.
    }
    await(door);
  }
  /// There is no room for one more just now.
  void rest(Door& door) {
    drop_oldest([](const WebVisit&) { return true; });
    door.pause.expires_after(kPause);
    door.pause.async_wait([this, &door](Code code) {
      if (!code) await(door);
    });
  }
  void welcome(int descriptor) {
    const int one = 1;
    // Fails of a Unix socket, which needs none.
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    WebSocketOfAnyKind socket(io_);
    Code code;
    socket.assign(asio::generic::stream_protocol(address.ss_family, 0), descriptor, code);
    if (code) {
      ::close(descriptor);
      return;
    }
    while (strangers_.size() >= limits_.strangers) {
      drop_oldest([](const WebVisit&) { return true; });
    }
    strangers_.push_back(std::make_shared<WebVisit>(std::move(socket), *this));
    strangers_.back()->begin();
  }
  void drop_oldest(const std::function<bool(const WebVisit&)>& among) {
    const auto oldest = std::find_if(strangers_.begin(), strangers_.end(),
                                     [&](const auto& each) { return among(*each); });
    if (oldest == strangers_.end()) return;
    const std::shared_ptr<WebVisit> visit = *oldest;
    visit->drop("others came");
  }

  const WebPage page_;
  const std::string token_;
  const WebLimits limits_;
  WebIo io_{1};
  std::vector<std::unique_ptr<Door>> doors_;
  asio::posix::stream_descriptor wake_;
  bool wake_awaited_ = false, stirred_ = false;
  std::list<std::shared_ptr<WebVisit>> strangers_;  ///< the oldest first
  std::shared_ptr<WebVisit> window_, arrived_;
};

namespace {

class VisitingWindow : public WebWindow {
 public:
  VisitingWindow(WebFront& front, std::shared_ptr<WebVisit> visit)
      : front_(front), visit_(std::move(visit)) {}

  std::optional<Message> take() override {
    auto bytes = visit_->take();
    if (!bytes) return std::nullopt;
    auto message = take_frame(*bytes, kMostFromClient);
    if (!message || !bytes->empty()) fail_wire("a frame that is not one message");
    return message;
  }
  void send(const Message& message) override { visit_->send(message); }
  size_t unsent() const override { return visit_->unsent(); }
  bool wait(double seconds, int wake) override {
    if (looks()) front_.wait(seconds, wake);
    return looks();
  }
  void refuse(const std::string& why) override { visit_->leave(kRefused, why); }
  const std::string& ended() const override { return visit_->why(); }

 private:
  bool looks() const { return visit_->state() == WebVisit::State::looking; }

  WebFront& front_;
  std::shared_ptr<WebVisit> visit_;
};

}  // namespace

WebFront::WebFront(std::span<const int> doors, std::span<const WebAsset> page, std::string token,
                   WebRules rules, const WebLimits& limits)
    : hall_(std::make_unique<Hall>(doors, page, std::move(token), std::move(rules), limits)) {}
WebFront::~WebFront() = default;
void WebFront::wait(double seconds, int wake) { hall_->wait(seconds, wake); }
size_t WebFront::connections() const { return hall_->connections(); }
std::unique_ptr<WebWindow> WebFront::take_window() {
  auto visit = hall_->take_window();
  return visit ? std::make_unique<VisitingWindow>(*this, std::move(visit)) : nullptr;
}

}  // namespace attnscope
