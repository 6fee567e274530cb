#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/stream/device_texels.h"
#include "viewer/app/document.h"
#include "viewer/view/window_size.h"

namespace attnscope {

/// The settings that the window is opened with.
struct ViewerSettings {
  std::optional<CaptureOrigin> origin;  ///< opened at once; none: the window begins empty
  std::filesystem::path second;         ///< a capture that is compared with it
  std::filesystem::path session;        ///< restored, where it exists; Ctrl+S writes it
  std::filesystem::path script;         ///< run without a visible window
  std::filesystem::path screenshot;     ///< written once all that is seen is exact, then it ends
  std::optional<ViewTheme> theme;
  std::optional<WindowSize> size;  ///< of the window
  int64_t texture_bytes = int64_t{512} << 20;
  int64_t memory_limit = 0;  ///< see ViewerApp::Settings
  bool force = false;
  bool follow = false;  ///< see ViewerApp::Settings; the origin need not be there yet
  TileSourceMaker make_source;
  ReadControl read_control;  ///< for the captures that are opened
  /// Changes the first capture's view (which head, which query) before it is shown.
  std::function<void(Document&)> prepare;
  std::function<void(const std::string&)> warn;  ///< told what a quick check of a capture found
  /// See ViewerApp::Settings.
  std::function<std::unique_ptr<TextureLink>()> link_textures;
  std::function<std::vector<std::filesystem::path>(const Capture&)> kept_in;
  std::function<void(const std::string&)> note;
  std::stop_token stop;  ///< closes the window
};

/// How a window ended.
enum class ViewerEnd : uint8_t { closed, failed, stopped };

/// Opens the window and runs it until it is closed, its script ends, or a stop is requested; a
/// script's failure is told by `complain`. Throws Error(unavailable) where there is no display, and
/// what opening the capture throws.
ViewerEnd run_viewer(const ViewerSettings& settings,
                     const std::function<void(const std::string&)>& complain);

}  // namespace attnscope
