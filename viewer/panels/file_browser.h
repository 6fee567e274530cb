#pragma once

#include <filesystem>
#include <vector>

#include "viewer/panels/widgets.h"

namespace attnscope {

/// A list of folders and captures to open one from.
class FileBrowser {
 public:
  /// Reads `folder`; where it cannot be read, the nearest parent that can.
  void open(std::filesystem::path folder);
  bool is_open() const { return open_; }
  void close() { open_ = false; }
  /// Closes itself when something was chosen, which is then in the requests.
  void draw(const Ui& ui, const ScreenRect& window, PanelRequests& requests);

 private:
  struct Entry {
    std::filesystem::path path;
    std::string name;
    bool folder = false;   ///< to go into
    bool capture = false;  ///< to open
  };
  void read();
  void draw_entries(const Ui& ui, float width, PanelRequests& requests);

  bool open_ = false;
  std::filesystem::path folder_;
  std::vector<Entry> entries_;
  std::string problem_;
};

}  // namespace attnscope
