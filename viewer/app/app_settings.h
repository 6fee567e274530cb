#pragma once

#include <string>

#include "core/stream/device_texels.h"
#include "viewer/app/document.h"

namespace attnscope {

/// How a window is opened, for whoever it belongs to.
struct AppSettings {
  TileSourceMaker make_source;
  ReadControl read_control;  ///< for the captures that are opened
  int64_t texture_bytes = int64_t{512} << 20;
  std::filesystem::path session;      ///< where Ctrl+S writes; empty: beside the capture
  std::filesystem::path recent_list;  ///< empty: none is kept
  bool force = false;                 ///< pictures and sessions replace what is there
  std::optional<ViewTheme> theme = {};
  std::function<void(const std::string&)> warn;  ///< told what a quick check of a capture found
  /// Links a device to the window's textures, as DeviceFacet::link_textures(); may be empty.
  std::function<std::unique_ptr<TextureLink>()> link_textures;
  /// The folders of which one keeps work on a capture for the next time; it is told where it is
  /// new. Empty: nobody is told.
  std::function<std::vector<std::filesystem::path>(const Capture&)> kept_in;
  std::function<void(const std::string&)> note;  ///< gets lines for people that are no warnings
  bool scripted_mouse = false;                   ///< the real mouse is ignored
  /// Calls that are added to the capture that is open are shown as they come.
  bool follow = false;
  /// What a capture has is shown from the start: several heads, a prompt, pictures of the video;
  /// sessions are shown as they were saved.
  bool begin_by_data = false;
  int64_t memory_limit = 0;  ///< of what is computed and kept, for the status line; 0: not known
};

}  // namespace attnscope
