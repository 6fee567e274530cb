#include "io/pictures/joined_parts.h"

namespace attnscope {

std::string joined_parts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += kPartSeparator;
    text += part;
  }
  return text;
}

}  // namespace attnscope
