#include "io/capture/facts/fact_overrides.h"

#include <charconv>

#include "io/capture/facts/mask_fact.h"

namespace attnscope {

bool is_number_list(const std::string& text) {
  return text.find(',') != std::string::npos &&
         text.find_first_not_of("0123456789,- ") == std::string::npos;
}

bool TextFact::names_file(const std::string& text) const {
  switch (kind) {
    case Kind::word:
      return false;
    case Kind::mask:
      return !is_mask_word(text);
    case Kind::list:
      return !is_number_list(text);
    case Kind::number: {
      double number = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, number);
      return error != std::errc() || stop != end;
    }
  }
  return false;
}

}  // namespace attnscope
