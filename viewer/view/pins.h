#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace attnscope {

/// An entry of the map that is kept under a number.
struct Pin {
  int64_t query = 0, key = 0;
  friend bool operator==(const Pin&, const Pin&) = default;
};
inline constexpr int64_t kPins = 8;

/// Pins by their numbers, from 1 to kPins. A value.
class Pins {
 public:
  /// Nothing where none has the number.
  std::optional<Pin> at(int64_t number) const;
  void set(int64_t number, std::optional<Pin> place);
  /// The number of a pin at this place, or nothing.
  std::optional<int64_t> number_of(const Pin& place) const;
  /// The lowest number that is free, or nothing.
  std::optional<int64_t> first_free() const;
  bool none() const { return *this == Pins(); }
  /// "1:700,200 3:5,6", query before key; "none".
  std::string text() const;
  friend bool operator==(const Pins&, const Pins&) = default;

 private:
  std::array<std::optional<Pin>, kPins> places_;
};

}  // namespace attnscope
