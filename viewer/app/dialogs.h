#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "viewer/app/notices.h"
#include "viewer/app/palette.h"
#include "viewer/panels/dialogs/file_browser.h"
#include "viewer/session/session.h"

namespace attnscope {

/// The lists and dialogs that stand in front of a window's panels and have its keys and mouse then:
/// an open list, what went wrong, the keys, files, the palette. Only on the window's thread.
class Dialogs {
 public:
  enum class Front : uint8_t { list, failure, help, browser, palette, panels };

  explicit Dialogs(Palette::Window palette) : palette_(std::move(palette)) {}

  /// A dialog that opens closes lists, so that a list is always the last that was opened.
  Front front() const;
  /// As front(), but without lists: the dialog that covers the panels, if any does.
  Front dialog() const;
  /// Whose the next key is shows in a frame that is not drawn yet.
  bool keeps_keys() const;
  /// The panels must ignore the mouse: a dialog covers them, or this is the second press of a
  /// double click whose first one closed a dialog or a list. To be asked once a frame.
  bool is_mouse_held_back();
  /// Gives a key to what stands in front; false where that are the panels.
  bool press(const KeyChord& chord);
  /// The keys since the last frame, for the list that is open.
  std::vector<KeyChord> take_list_keys() { return std::exchange(list_keys_, {}); }
  /// Draws the dialog in front alone: what stands behind it takes no mouse.
  void draw(const Ui& ui, const ScreenRect& window, PanelRequests& requests);

  void show_help(bool on) { help_ = on; }
  bool shows_help() const { return help_; }
  /// Shows the files of a folder; what is chosen is a second capture, or the one to open.
  void browse(const std::filesystem::path& folder, bool second);
  void browse_to_save(const std::string& name);
  /// True, once, where what was chosen last is a second capture.
  bool take_is_second() { return std::exchange(is_second_, false); }
  Notices& notices() { return notices_; }
  const Notices& notices() const { return notices_; }
  Palette& palette() { return palette_; }

 private:
  Notices notices_;
  bool help_ = false;
  FileBrowser browser_{is_session_file};
  bool is_second_ = false;
  Palette palette_;
  /// Of the mouse's left button: the last press was not the panels', and it is still down and would
  /// reach them.
  bool press_held_back_ = false, holds_back_ = false;
  Front drawn_ = Front::panels;  ///< the dialog of the frame that was drawn last
  std::vector<KeyChord> list_keys_;
};

}  // namespace attnscope
