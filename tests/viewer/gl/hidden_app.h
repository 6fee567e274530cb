#pragma once

#include "kernels/backend_factory.h"
#include "tests/support/project_paths.h"
#include "viewer/app/viewer_app.h"
#include "viewer/tiles/tile_service.h"

namespace attnscope::test {

inline Window::Settings hidden_window() {
  Window::Settings settings;
  settings.size = {640, 480};
  settings.visible = false;
  return settings;
}

/// The window as the program opens it, with nothing open and out of sight.
struct HiddenApp {
  explicit HiddenApp(bool scripted_mouse = true) : app(window, settings(scripted_mouse)) {}

  Window window{hidden_window()};
  std::unique_ptr<TileBackend> backend = make_backend(parse_backend("auto"), {1});
  ViewerApp app;

  void open_sample() {
    app.open(std::filesystem::path(project_folder() + "/samples/moving-shapes"));
  }
  const ViewState& state() const { return app.document()->history.now(); }
  /// Draws until there is nothing left to draw.
  void settle() {
    while (app.step(0)) {
    }
  }
  /// Draws until something is reached; false where that takes two minutes.
  bool wait_for(WaitFor what) {
    const double limit = app.seconds() + 120;
    while (!app.reached(what) && app.seconds() < limit) app.step(0.02);
    return app.reached(what);
  }

 private:
  ViewerApp::Settings settings(bool scripted_mouse) const {
    ViewerApp::Settings settings;
    settings.scripted_mouse = scripted_mouse;
    settings.make_source.of_capture = [this](const Capture& capture, std::function<void()> wake) {
      return std::make_unique<TileService>(map_calls(capture), *backend, TileService::Settings{},
                                           std::move(wake));
    };
    return settings;
  }
};

}  // namespace attnscope::test
