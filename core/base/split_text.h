#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace attnscope {

/// The parts of a text between `by`, one more than there are of these; parts may be empty. Borrows
/// the text.
inline std::vector<std::string_view> split_text(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace attnscope
