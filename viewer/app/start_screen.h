#pragma once

#include <deque>
#include <filesystem>
#include <optional>

#include "viewer/app/document.h"
#include "viewer/gl/framebuffer.h"
#include "viewer/gl/picture_texture.h"
#include "viewer/panels/dialogs/empty_state.h"

namespace attnscope {

/// The captures that a window without one shows, which were opened lately: facts, and a small
/// picture of the map that was seen of each. Only on the window's thread.
class StartScreen {
 public:
  /// `list`: where they are kept (recent_files.h); empty: nothing is kept.
  explicit StartScreen(std::filesystem::path list) : list_(std::move(list)) {}

  /// True where a capture is kept in the list: others have no name to open them by.
  bool keeps(const Document& document) const {
    return !list_.empty() && !document.origin.path.empty();
  }
  /// Puts a capture first in the list; it has to be one that is kept.
  void remember(const Document& document);
  /// Keeps what is seen of its map as the small picture of a capture that was remembered.
  void keep_picture(const Document& document, const gl::ReadPixels& map);
  /// The list, read where it is not known yet.
  EmptyState state();

 private:
  void read();

  const std::filesystem::path list_;
  /// Nothing: not read since something was kept.
  std::optional<std::vector<RecentEntry>> recent_;
  std::deque<gl::PictureTexture> pictures_;
};

}  // namespace attnscope
