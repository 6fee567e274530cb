#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attnscope {

/// Two descriptors to and from another process, read and written without waiting for it. Owns
/// them. Not thread-safe, but for the descriptor of an EventBell.
class ByteLine {
 public:
  /// `in` and `out` may be the same; −1: there is none.
  ByteLine(int in, int out);
  ~ByteLine();
  ByteLine(const ByteLine&) = delete;
  ByteLine& operator=(const ByteLine&) = delete;

  /// Reads and writes what it can, and waits for that, for `wake` to become readable (−1: nothing),
  /// or so many seconds, whatever is first. False: the other side has ended, or an error has
  /// (problem()); what had come is still in received().
  bool wait(double seconds, int wake = -1);
  /// Bytes that came, to be taken off their beginning by whoever reads them. No more is read while
  /// there are more than `most`.
  std::string& received() { return received_; }
  void set_most_received(size_t most) { most_received_ = most; }
  void send(std::string_view bytes) { unsent_ += bytes; }
  size_t unsent() const { return unsent_.size() - sent_; }
  /// All that ever came.
  size_t total_received() const { return total_received_; }
  /// The error that ended the line, one line; empty: the other side ended it.
  const std::string& problem() const { return problem_; }
  /// The other side finds the end of what it reads. unsent() goes lost.
  void close_out();

 private:
  bool read_some();
  bool write_some();

  int in_, out_;
  std::string received_, unsent_, problem_;
  size_t sent_ = 0, total_received_ = 0;
  size_t most_received_ = size_t{512} << 20;
};

/// Wakes who waits for a line, from any thread.
class EventBell {
 public:
  /// Throws Error(resource).
  EventBell();
  ~EventBell();
  EventBell(const EventBell&) = delete;
  EventBell& operator=(const EventBell&) = delete;
  void ring() const;
  /// It is quiet until it rings again. Whether it had rung.
  bool quiet() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace attnscope
