#pragma once

#include <cstddef>
#include <string>

namespace attnscope {

/// "a, b or c": how messages list choices. `words` is an array of strings or string views.
template <typename Words>
std::string choice_list(const Words& words) {
  std::string text;
  size_t left = words.size();
  for (const auto& word : words) {
    text += word;
    if (--left > 0) text += left > 1 ? ", " : " or ";
  }
  return text;
}

}  // namespace attnscope
