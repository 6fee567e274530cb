#include "io/files/utf8.h"

#include <algorithm>
#include <array>
#include <optional>

namespace attnscope {
namespace {

/// The first bytes and the characters of sequences of one length (RFC 3629, section 3).
struct Form {
  unsigned char lead_mask, lead;  ///< lead & lead_mask == lead
  size_t length;
  char32_t least;  ///< shorter sequences stand for what is below it
};

constexpr std::array<Form, 4> kForms{
    {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}}};

/// Moves `at` behind the sequence that begins there, or behind what there is of it; the character
/// that it stands for, if any.
std::optional<char32_t> decode(std::string_view text, size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const auto form = std::find_if(kForms.begin(), kForms.end(),
                                 [&](const Form& f) { return (lead & f.lead_mask) == f.lead; });
  if (form == kForms.end()) return std::nullopt;
  char32_t code = lead & static_cast<unsigned char>(~form->lead_mask);
  for (size_t i = 1; i < form->length; ++i) {
    if (at == text.size()) return std::nullopt;
    const auto next = static_cast<unsigned char>(text[at]);
    if (next >> 6 != 2) return std::nullopt;
    code = code << 6 | (next & 0x3f);
    ++at;
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < form->least || code > 0x10ffff || surrogate) return std::nullopt;
  return code;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (!decode(text, at)) return false;
  }
  return true;
}

char32_t next_character(std::string_view text, size_t& at) {
  return decode(text, at).value_or(kReplacementCharacter);
}

void append_character(char32_t c, std::string& text) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3f));
  } else {
    add(0xf0 | (c >> 18 & 7));
    add(0x80 | (c >> 12 & 0x3f));
    add(0x80 | (c >> 6 & 0x3f));
  }
  add(0x80 | (c & 0x3f));
}

}  // namespace attnscope
