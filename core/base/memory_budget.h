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

/// The one account from which every buffer whose size grows with the data is reserved before it is
/// allocated. Thread-safe. Must outlive its reservations.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Throws Error(resource) naming `purpose`, the bytes asked for, taken and allowed.
  MemoryReservation reserve(int64_t bytes, std::string_view purpose);
  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(); }
  int64_t peak() const { return peak_.load(); }
  int64_t available() const { return limit_ - used(); }

 private:
  friend class MemoryReservation;
  void release(int64_t bytes) noexcept;
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

/// "256MiB", "4GB", "1.5GiB", "50%" of `available`. Throws Error(usage) otherwise.
int64_t parse_size(std::string_view text, std::string_view option, int64_t available);
/// "1.50 GiB".
std::string format_bytes(int64_t bytes);

}  // namespace attnscope
