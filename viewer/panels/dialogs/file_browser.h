#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A list of folders, captures and sessions to open one from, with the mouse or the keys, and a
/// field for a path.
class FileBrowser {
 public:
  /// `is_session`: whether a file of this name is a session; empty: none is listed.
  explicit FileBrowser(std::function<bool(const std::filesystem::path&)> is_session = {})
      : is_session_(std::move(is_session)) {}
  /// Reads `folder`; where it cannot be read, the nearest parent that can.
  void open(std::filesystem::path folder);
  /// As open(), to choose where something is saved: under this name, unless another is typed.
  void open_to_save(std::filesystem::path folder, const std::string& name);
  bool is_open() const { return open_; }
  /// Arrows, Page Up and Down, Home and End mark a line, letters the first one that begins with
  /// them, Enter and Space take it, Backspace goes to the folder above, / and ~ begin a path in the
  /// field, where Enter takes it, Esc closes. What that brings about comes with the next draw().
  void press(const KeyChord& chord);
  /// A path was begun, and the field that takes the next letters is not there yet.
  bool keeps_keys() const { return begins_path_; }
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
  /// "capture" or "session" of what is to be opened, by its name; else empty.
  std::string what_is(const std::filesystem::path& path) const;
  void read();
  void enter(std::filesystem::path folder);
  void choose(const std::filesystem::path& path, PanelRequests& requests);
  void set_path(const std::string& text);
  void take_path(PanelRequests& requests);
  void type_ahead(char letter);
  void draw_path(const Ui& ui, float width, PanelRequests& requests);
  void draw_entries(const Ui& ui, float width, PanelRequests& requests);

  std::function<bool(const std::filesystem::path&)> is_session_;
  bool open_ = false;
  std::string saved_name_;  ///< of what is to be saved; empty: something is to be opened
  std::filesystem::path folder_;
  std::vector<Entry> entries_;
  std::string problem_;
  int marked_ = 0;         ///< a line: the folder above, where there is one, then the entries
  bool moved_ = false;     ///< by a key since the last frame
  bool takes_it_ = false;  ///< a key takes the marked line
  std::string typed_;      ///< letters since another key, in lower case
  std::array<char, 4096> path_{};
  bool begins_path_ = false;  ///< the field is to have the keys, and has not
  bool edits_path_ = false;   ///< it had them in the last frame
  bool takes_path_ = false;   ///< a key takes the path
};

}  // namespace attnscope
