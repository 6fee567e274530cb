#include "viewer/view/pins.h"

#include <fmt/core.h>

namespace attnscope {

std::optional<Pin> Pins::at(int64_t number) const {
  if (number < 1 || number > kPins) return std::nullopt;
  return places_[static_cast<size_t>(number - 1)];
}

void Pins::set(int64_t number, std::optional<Pin> place) {
  places_.at(static_cast<size_t>(number - 1)) = place;
}

std::optional<int64_t> Pins::number_of(const Pin& place) const {
  for (int64_t number = 1; number <= kPins; ++number) {
    if (at(number) == place) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> Pins::first_free() const {
  for (int64_t number = 1; number <= kPins; ++number) {
    if (!at(number)) return number;
  }
  return std::nullopt;
}

std::string Pins::text() const {
  std::string text;
  for (int64_t number = 1; number <= kPins; ++number) {
    const std::optional<Pin> pin = at(number);
    if (!pin) continue;
    text += fmt::format("{}{}:{},{}", text.empty() ? "" : " ", number, pin->query, pin->key);
  }
  return text.empty() ? "none" : text;
}

}  // namespace attnscope
