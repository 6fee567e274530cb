#pragma once

#include <string>

#include "viewer/app/app_script_host.h"

namespace attnscope {

/// Runs the palette's lines as those of a script, but the status line tells what they print and
/// write.
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
