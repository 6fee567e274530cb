#include "cli/common/shell_words.h"

#include <algorithm>
#include <string_view>

namespace attnscope {

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:,+@%=").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string file_name(const std::filesystem::path& path) {
  const std::filesystem::path name = path.filename();
  return name.empty() ? path.parent_path().filename().string() : name.string();
}

}  // namespace attnscope
