#include "viewer/settings/script_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// The whole text as a number; whether it is one.
template <typename Number>
bool read_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

Error no_number(std::string_view what, const char* kind, const std::string& text) {
  return usage_error(fmt::format("{}: expected {}, got \"{}\"", what, kind, one_line(text)));
}

}  // namespace

double parse_script_number(std::string_view what, const std::string& text) {
  double value = 0;
  if (read_number(text, value) && std::isfinite(value)) return value;
  throw no_number(what, "a number", text);
}

int64_t whole(ScriptArguments words, size_t at) {
  int64_t value = 0;
  if (read_number(words[at], value)) return value;
  throw no_number(words[0], "a whole number", words[at]);
}

double number(ScriptArguments words, size_t at) { return parse_script_number(words[0], words[at]); }

bool is_on(ScriptArguments words, size_t at) {
  if (words[at] != "on" && words[at] != "off") {
    throw unknown_name(fmt::format("{}", fmt::join(words.first(at), " ")), words[at],
                       {"on", "off"});
  }
  return words[at] == "on";
}

std::string joined(ScriptArguments words, size_t at) {
  return fmt::format("{}", fmt::join(words.subspan(at), " "));
}

std::string text_word(const std::string& text, std::string_view none) {
  if (text.empty()) return std::string(none);
  return text == none || text.front() == '\\' ? "\\" + text : text;
}

std::string word_text(const std::string& word, std::string_view none) {
  if (word == none) return "";
  return word.starts_with('\\') ? word.substr(1) : word;
}

std::string script_quoted(const std::string& word) {
  if (word.find('\n') != std::string::npos || word.find('\0') != std::string::npos) {
    throw Error(ErrorCode::file, "a name has a line break: " + one_line(word));
  }
  if (!word.empty() && word.find_first_of(" \t\r#\"\\") == std::string::npos) return word;
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

}  // namespace attnscope
