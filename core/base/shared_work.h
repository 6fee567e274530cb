#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace attnscope {

/// Work that several processes may do together, as one of them sees it: units that are given out
/// one at a time, and sums over what all did. All of them ask for the same in the same order.
class SharedWork {
 public:
  virtual ~SharedWork() = default;

  /// How many processes there are.
  virtual int processes() const = 0;
  /// `count` units are to be done, 0 to count − 1. Between these and the units before lies an
  /// add_up(), or whatever else all wait for.
  virtual void begin_units(int64_t count) = 0;
  /// The next of them, each for one process alone, ascending; nothing when none is left.
  /// Thread-safe.
  virtual std::optional<int64_t> next_unit() = 0;
  /// Every number becomes the sum of all processes' at its place. Waits for all.
  virtual void add_up(std::span<int64_t> numbers) = 0;
};

}  // namespace attnscope
