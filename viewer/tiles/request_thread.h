#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/failure_text.h"

namespace attnscope {

/// Serves requests one after the other on a thread of its own, which ends with it; those that are
/// left then are dropped. Thread-safe.
template <typename Request>
class RequestThread {
 public:
  using Serve = std::function<void(Request& request, std::stop_token stop)>;
  /// `failed` is told what a request failed with, but for Error(interrupted), which ends the
  /// thread.
  using Failed = std::function<void(const Request& request, const std::string& problem)>;

  RequestThread(Serve serve, Failed failed) : serve_(std::move(serve)), failed_(std::move(failed)) {
    thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
  }
  ~RequestThread() {
    thread_.request_stop();
    thread_.join();
  }
  RequestThread(const RequestThread&) = delete;
  RequestThread& operator=(const RequestThread&) = delete;

  void add(Request request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    changed_.notify_one();
  }

 private:
  void run(std::stop_token stop) {
    while (true) {
      Request request;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !requests_.empty(); })) return;
        request = std::move(requests_.front());
        requests_.pop_front();
      }
      try {
        serve_(request, stop);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::interrupted) return;
        failed_(request, error.what());
      } catch (const std::exception& error) {
        failed_(request, failure_text(error));
      }
    }
  }

  const Serve serve_;
  const Failed failed_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Request> requests_;
  std::jthread thread_;
};

}  // namespace attnscope
