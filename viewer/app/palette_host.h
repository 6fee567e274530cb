#pragma once

#include <string>

#include "viewer/app/app_script_host.h"

namespace attnscope {

/// What the palette's lines are done to: as those of a script, but what they print and write is
/// told by the status line.
class PaletteHost : public AppScriptHost {
 public:
  /// Borrows the window's contents.
  explicit PaletteHost(ViewerApp& app) : AppScriptHost(app, false), app_(app) {}
  void print(const std::string& line) override { app_.tell(line); }
  void shot(const std::string& path) override;
  void save_session(const std::string& path) override;

 private:
  ViewerApp& app_;
};

}  // namespace attnscope
