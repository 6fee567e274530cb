#include "viewer/app/palette_host.h"

#include "viewer/session/session_paths.h"

namespace attnscope {

void PaletteHost::shot(const std::string& path) {
  AppScriptHost::shot(path);
  app_.tell("picture saved: " + told_path(path));
}

void PaletteHost::save_session(const std::string& path) {
  AppScriptHost::save_session(path);
  app_.tell("session saved: " + told_path(path));
}

}  // namespace attnscope
