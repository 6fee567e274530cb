#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "viewer/app/app_settings.h"
#include "viewer/view/window_size.h"

namespace attnscope {

/// The settings that the window is opened with.
struct ViewerSettings : AppSettings {
  std::optional<CaptureOrigin> origin = {};  ///< opened at once; none: the window begins empty
  std::filesystem::path second = {};         ///< a capture that is compared with it
  std::filesystem::path script = {};         ///< run without a visible window
  std::filesystem::path screenshot = {};  ///< written once all that is seen is exact, then it ends
  std::optional<WindowSize> size = {};    ///< of the window
  /// Changes the first capture's view (which head, which query) before it is shown.
  std::function<void(Document&)> prepare = {};
  std::stop_token stop = {};  ///< closes the window
};

/// How a window ended.
enum class ViewerEnd : uint8_t { closed, failed, stopped };

/// Opens the window and runs it until it is closed, its script ends, or a stop is requested; a
/// script's failure is told by `complain`. Throws Error(unavailable) where there is no display, and
/// what opening the capture throws.
ViewerEnd run_viewer(const ViewerSettings& settings,
                     const std::function<void(const std::string&)>& complain);

}  // namespace attnscope
