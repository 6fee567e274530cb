#pragma once

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include "core/base/error.h"
#include "kernels/backend_factory.h"
#include "tests/support/project_paths.h"
#include "viewer/app/viewer_app.h"
#include "viewer/tiles/capture_tiles.h"

namespace attnscope::test {

/// Of a window that begins as a person's does.
inline ViewerApp::Settings first_settings() {
  ViewerApp::Settings settings;
  settings.begin_by_data = true;
  return settings;
}

inline Window::Settings hidden_window() {
  Window::Settings settings;
  settings.size = WindowSize{640, 480};
  settings.visible = false;
  return settings;
}

/// The window as the program opens it, with nothing open and out of sight.
struct HiddenApp {
  explicit HiddenApp(bool scripted_mouse = true, const Window::Settings& of = hidden_window(),
                     const ViewerApp::Settings& usual = {})
      : window(of), app(window, settings(scripted_mouse, usual)) {}

  Window window;
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
  /// Clicks the middle of a label that has to be there, by the script's mouse.
  void click(const std::string& label) {
    const auto rect = app.labels().find(label);
    if (!rect) throw usage_error("no label " + label);
    click(*rect);
  }
  void click(const ScreenRect& rect) {
    app.mouse().click((rect.x0 + rect.x1) / 2, (rect.y0 + rect.y1) / 2);
    settle();
  }
  /// Presses a key and draws what it brings.
  void press(const std::string& chord) {
    app.press(parse_chord(chord));
    settle();
  }
  /// Makes the window so large, whatever a window manager does; false where that takes 20 seconds.
  bool force_size(WindowSize size) {
    glfwSetWindowSize(glfwGetCurrentContext(), size.width, size.height);
    const double limit = app.seconds() + 20;
    const auto there = [&] {
      return window.width() == size.width && window.height() == size.height;
    };
    while (!there() && app.seconds() < limit) app.step(0.01);
    settle();
    return there();
  }
  /// The texts that an edge cuts without a sign, a line each.
  std::string lost_texts() const {
    std::string lost;
    for (const WrittenText& text : app.labels().texts()) {
      if (text.lost) lost += text.whole + "\n";
    }
    return lost;
  }
  /// Draws until something is reached; false where that takes two minutes.
  bool wait_for(WaitFor what) {
    const double limit = app.seconds() + 120;
    while (!app.reached(what) && app.seconds() < limit) app.step(0.02);
    return app.reached(what);
  }

 private:
  ViewerApp::Settings settings(bool scripted_mouse, const ViewerApp::Settings& usual) const {
    ViewerApp::Settings settings = usual;
    settings.scripted_mouse = scripted_mouse;
    settings.make_source.of_capture = [this](const Capture& capture, std::function<void()> wake) {
      return std::make_unique<CaptureTiles>(capture, *backend, TileService::Settings{}, false,
                                            std::move(wake));
    };
    return settings;
  }
};

}  // namespace attnscope::test
