#include "core/products/tokens/special_token.h"

#include <algorithm>
#include <cctype>

#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
}

/// "[CLS]", "[unused12]": letters, digits and _ alone, and no space.
bool is_bracketed_name(std::string_view token) {
  if (token.size() < 3 || token.front() != '[' || token.back() != ']') return false;
  return std::all_of(token.begin() + 1, token.end() - 1, [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
}

/// In any case.
bool holds_pad(std::string_view token) {
  constexpr std::string_view kPad = "pad";
  return std::search(token.begin(), token.end(), kPad.begin(), kPad.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != token.end();
}

}  // namespace

bool is_special_token(std::string_view token) {
  const std::string_view text = token_piece(token).text;
  if (text.empty()) return token.empty();
  if (is_byte_token(text)) return false;
  const bool angled = text.size() > 2 && text.front() == '<' && text.back() == '>' &&
                      text.find(' ') == std::string_view::npos;
  return angled || is_bracketed_name(text);
}

bool is_padding_token(std::string_view token) {
  if (!is_special_token(token)) return false;
  return token.empty() || holds_pad(token);
}

}  // namespace attnscope
