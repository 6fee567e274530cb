#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace attnscope {

class MemoryBudget;

/// Bytes taken from a MemoryBudget until destruction. Movable.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryReservation&& other) noexcept;
  MemoryReservation& operator=(MemoryReservation&& other) noexcept;
  ~MemoryReservation();
  int64_t bytes() const { return bytes_; }

 private:
  friend class MemoryBudget;
  MemoryReservation(MemoryBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

/// The part of a budget that a plan may use: `bytes`, beside which `taken` bytes are in use for as
/// long as the plan is carried out. A budget that would do has room for both.
struct MemoryRoom {
  MemoryRoom(int64_t free_bytes, int64_t taken_bytes = 0) : bytes(free_bytes), taken(taken_bytes) {}
  int64_t bytes;
  int64_t taken;
};

/// The one account from which every buffer whose size grows with the data is reserved before it is
/// allocated. Thread-safe. Must outlive its reservations.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}
  /// Of what another account has left: its limit is `room.bytes`. What is taken there counts only
  /// in what room() says.
  explicit MemoryBudget(const MemoryRoom& room) : limit_(room.bytes), beside_(room.taken) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Throws Error(resource) naming `purpose`, the bytes asked for, taken and allowed.
  MemoryReservation reserve(int64_t bytes, std::string_view purpose);
  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(); }
  int64_t peak() const { return peak_.load(); }
  int64_t available() const { return limit_ - used(); }
  /// The room that is left now, beside the bytes in use here and elsewhere and the `reserved` bytes
  /// that somebody will use.
  MemoryRoom room(int64_t reserved = 0) const;

 private:
  friend class MemoryReservation;
  void release(int64_t bytes) noexcept;
  const int64_t limit_;
  const int64_t beside_ = 0;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

/// "256MiB", "4GB", "1.5GiB"; unless `available` is negative, "50%" of it. Or throws Error(usage).
int64_t parse_size(std::string_view text, std::string_view option, int64_t available);
/// "1.50 GiB".
std::string format_bytes(int64_t bytes);

}  // namespace attnscope
