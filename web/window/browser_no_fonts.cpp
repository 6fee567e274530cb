#include "web/window/browser.h"

#include "io/pictures/text/system_fonts.h"

// In place of io/pictures/text/system_fonts.cpp: a page sees no font files.

namespace attnscope {

SystemFonts::SystemFonts(const std::vector<std::filesystem::path>&) {}
SystemFonts::~SystemFonts() = default;
const SystemFonts& SystemFonts::installed() {
  static const SystemFonts none({});
  return none;
}
std::optional<std::filesystem::path> SystemFonts::find(const std::vector<std::string>&) const {
  return std::nullopt;
}
const SystemFont* SystemFonts::with_letter(char32_t) const { return nullptr; }

}  // namespace attnscope
