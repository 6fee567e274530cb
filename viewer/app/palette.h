#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viewer/app/app_script_host.h"
#include "viewer/panels/palette_panel.h"
#include "viewer/script/script_runner.h"

namespace attnscope {

/// The command palette of a window: what it finds, and what choosing it does. Lines of scripts run
/// over as many frames as they take; what they print is told by the status line, and what they fail
/// with below the field, which is open again then. Only on the window's thread.
class Palette {
 public:
  /// Borrows the window's contents.
  explicit Palette(ViewerApp& app) : app_(app), host_(app) {}

  bool is_open() const { return panel_.is_open(); }
  void open() { panel_.open(); }
  void press(const KeyChord& chord) { panel_.press(chord, items_.size()); }
  /// As if it were typed.
  void type(const std::string& text) { panel_.set_text(panel_.text() + text); }
  /// Draws it; what was taken is done after the frame, by go_on().
  void draw(const Ui& ui, const ScreenRect& window);
  /// Does what was taken, and goes on with a line that is being run.
  void go_on(double seconds);
  bool is_running() const { return runner_ != nullptr; }

 private:
  class Host : public AppScriptHost {
   public:
    explicit Host(ViewerApp& app) : AppScriptHost(app, false), app_(app) {}
    void print(const std::string& line) override;
    void shot(const std::string& path) override;
    void save_session(const std::string& path) override;

   private:
    ViewerApp& app_;
  };
  std::vector<PaletteItem> found() const;
  void take(const PaletteItem& item);

  ViewerApp& app_;
  Host host_;
  PalettePanel panel_;
  std::vector<PaletteItem> items_;
  std::string taken_line_;
  std::optional<CommandId> taken_command_;
  std::string line_;  ///< that is being run
  std::unique_ptr<ScriptRunner> runner_;
};

}  // namespace attnscope
