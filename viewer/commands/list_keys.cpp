#include "viewer/commands/list_keys.h"

#include <algorithm>

namespace attnscope {
namespace {

constexpr int kPageItems = 10;

}  // namespace

std::optional<int> moved_in_list(const KeyChord& chord, int at, int count) {
  const auto within = [count](int item) { return std::clamp(item, 0, count - 1); };
  switch (chord.key) {
    case Key::up:
      return within(at - 1);
    case Key::down:
      return within(at + 1);
    case Key::page_up:
      return within(at - kPageItems);
    case Key::page_down:
      return within(at + kPageItems);
    case Key::home:
      return 0;
    case Key::end:
      return count - 1;
    default:
      return std::nullopt;
  }
}

bool takes_item(const KeyChord& chord) {
  return chord.key == Key::enter || chord.key == Key::space;
}

}  // namespace attnscope
