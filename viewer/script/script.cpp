#include "viewer/script/script.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "viewer/script/script_words.h"

namespace attnscope {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Script parse_script(std::string_view text, const std::string& file) {
  Script script{file, {}};
  int64_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    try {
      size_t comment = 0;
      const auto words = script_line_words(line, comment);
      if (words.empty()) continue;
      script.lines.push_back(
          {number, std::string(trimmed(line.substr(0, comment))), parse_script_words(words)});
    } catch (const Error& error) {
      throw usage_error(fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
  return script;
}

ScriptWord parse_script_line(std::string_view line) {
  size_t comment = 0;
  const auto words = script_line_words(line, comment);
  if (words.empty()) throw usage_error("expected a command");
  return parse_script_words(words);
}

}  // namespace attnscope
