#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/panels/dialogs/palette_panel.h"
#include "viewer/script/palette_search.h"
#include "viewer/script/script_runner.h"

namespace attnscope {

/// The command palette of a window: what it finds, and what choosing it does. Lines of scripts run
/// over as many frames as they take; what they fail with is told below the field, which is open
/// again then. Only on the window's thread.
class Palette {
 public:
  struct Window {
    std::function<PaletteContext()> context;  ///< what is open and shown
    std::function<void(CommandId)> run;
    std::function<void()> close;  ///< ends the program
  };
  explicit Palette(Window window) : window_(std::move(window)) {}

  /// Sets the host that runs lines of scripts. Without one the palette refuses such lines.
  void set_host(std::unique_ptr<ScriptHost> host) { host_ = std::move(host); }
  bool is_open() const { return panel_.is_open(); }
  void open() { panel_.open(); }
  /// Keys are kept: those for the field until it is there, those behind a line until that was
  /// begun.
  bool keeps_keys() const { return is_open() ? !panel_.takes_keys() : has_taken(); }
  /// Enter takes what fits the text as it is now, whatever list was drawn last.
  void press(const KeyChord& chord);
  /// As if it were typed.
  void type(const std::string& text) { panel_.set_text(panel_.text() + text); }
  /// Draws it; what was taken is done after the frame, by go_on().
  void draw(const Ui& ui, const ScreenRect& window);
  /// Does what was taken, once `frames` (drawn until now) are kFramesAfterClose more than when the
  /// palette closed, and goes on with a line that is being run; true where the window is to be
  /// drawn for it.
  bool go_on(double seconds, int64_t frames);

 private:
  bool has_taken() const { return taken_command_ || !taken_line_.empty(); }
  void find();
  void take(const PaletteItem& item);
  void keep(PaletteItem item);
  void begin(const std::string& line);
  void tell(const std::string& problem);

  const Window window_;
  std::unique_ptr<ScriptHost> host_;
  PalettePanel panel_;
  std::vector<PaletteItem> items_;
  std::vector<PaletteItem> done_;  ///< lately, the latest first
  std::string taken_line_;
  std::optional<CommandId> taken_command_;
  std::optional<int64_t> taken_at_;  ///< frames that were drawn until then
  std::string line_;                 ///< that is being run
  std::unique_ptr<ScriptRunner> runner_;
};

}  // namespace attnscope
