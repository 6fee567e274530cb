#include "io/files/utf8.h"

namespace attnscope {

bool valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80       ? 1
                          : lead >> 5 == 6  ? 2
                          : lead >> 4 == 14 ? 3
                          : lead >> 3 == 30 ? 4
                                            : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t j = 1; j < length; ++j) {
      if (static_cast<unsigned char>(text[i + j]) >> 6 != 2) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace attnscope
