#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A list of folders, captures and sessions to open one from, with the mouse or the keys.
class FileBrowser {
 public:
  /// `is_session`: whether a file of this name is a session; empty: none is listed.
  explicit FileBrowser(std::function<bool(const std::filesystem::path&)> is_session = {})
      : is_session_(std::move(is_session)) {}
  /// Reads `folder`; where it cannot be read, the nearest parent that can.
  void open(std::filesystem::path folder);
  bool is_open() const { return open_; }
  /// Arrows, Page Up and Down, Home and End mark a line, Enter and Space take it, Backspace goes to
  /// the folder above, Esc closes. What that brings about comes with the next draw().
  void press(const KeyChord& chord);
  /// Closes itself when something was chosen, which is then in the requests.
  void draw(const Ui& ui, const ScreenRect& window, PanelRequests& requests);

 private:
  struct Entry {
    std::filesystem::path path;
    std::string name;
    bool folder = false;  ///< to go into, where it is not to be opened
    std::string what;     ///< "capture" or "session", to be opened; empty: neither
  };
  bool has_above() const { return folder_.has_relative_path(); }
  void read();
  void enter(std::filesystem::path folder);
  void draw_entries(const Ui& ui, float width, PanelRequests& requests);

  std::function<bool(const std::filesystem::path&)> is_session_;
  bool open_ = false;
  std::filesystem::path folder_;
  std::vector<Entry> entries_;
  std::string problem_;
  int marked_ = 0;         ///< a line: the folder above, where there is one, then the entries
  bool moved_ = false;     ///< by a key since the last frame
  bool takes_it_ = false;  ///< a key takes the marked line
};

}  // namespace attnscope
