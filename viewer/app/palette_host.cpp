#include "viewer/app/palette_host.h"

#include <filesystem>

namespace attnscope {

void PaletteHost::shot(const std::string& path) {
  AppScriptHost::shot(path);
  app_.tell("picture saved: " + std::filesystem::absolute(path).string());
}

void PaletteHost::save_session(const std::string& path) {
  AppScriptHost::save_session(path);
  app_.tell("session saved: " + std::filesystem::absolute(path).string());
}

}  // namespace attnscope
