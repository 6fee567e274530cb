#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope {

/// The factor of each head's products q·k: a number for all heads, or one each (Swin V2 learns
/// them). A value; thread-safe.
class HeadScales {
 public:
  /// One for all heads.
  HeadScales(double scale = 0) : each_{scale} {}
  /// One a head, at least one.
  explicit HeadScales(std::vector<double> each);

  double of(int64_t head) const { return each_[is_one() ? 0 : static_cast<size_t>(head)]; }
  /// True where all heads have the same.
  bool is_one() const { return each_.size() == 1; }
  /// A single number, or one a head.
  const std::vector<double>& each() const { return each_; }
  /// "0.125"; "16 numbers, one a head, 0.0883 to 0.125" with `digits` digits.
  std::string words(int digits) const;

  friend bool operator==(const HeadScales&, const HeadScales&) = default;

 private:
  std::vector<double> each_;
};

}  // namespace attnscope
