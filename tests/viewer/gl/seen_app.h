#pragma once

#include "tests/support/catch.h"
#include "tests/viewer/gl/hidden_app.h"
#include "tests/viewer/gl/real_input.h"
#include "viewer/app/app_script_host.h"

namespace attnscope::test {

/// A window that is seen, with the sample in it, and a hand.
struct SeenApp : HiddenApp {
  static constexpr WindowSize kUsualSize{1200, 760};

  explicit SeenApp(WindowSize size = kUsualSize, const ViewerApp::Settings& usual = {})
      : HiddenApp(false, seen_window(size), usual) {
    app.set_script_host(std::make_unique<AppScriptHost>(app, false, true));
    open_sample();
    REQUIRE(wait_for(WaitFor::exact));
    settle();
  }

  static Window::Settings seen_window(WindowSize size = kUsualSize) {
    Window::Settings settings;
    settings.size = size;
    return settings;
  }

  ScreenRect place(const std::string& label) {
    const auto rect = app.labels().find(label);
    INFO(label);
    REQUIRE(rect);
    return *rect;
  }
  /// Moves to a place within what has this label, in shares of its sides.
  void point(const std::string& label, double across = 0.5, double down = 0.5) {
    const ScreenRect rect = place(label);
    int left = 0, top = 0;
    glfwGetWindowPos(glfwGetCurrentContext(), &left, &top);
    hand.move(left + static_cast<int>(rect.x0 + (rect.x1 - rect.x0) * static_cast<float>(across)),
              top + static_cast<int>(rect.y0 + (rect.y1 - rect.y0) * static_cast<float>(down)));
    settle();
  }
  void click(const std::string& label, int button = 1) {
    point(label);
    hand.button(button, true);
    hand.button(button, false);
    settle();
  }
  void double_click(const std::string& label) {
    point(label, 0.3);
    for (const bool down : {true, false, true, false}) hand.button(1, down);
    settle();
  }
  void drag(const std::string& label, double x0, double y0, double x1, double y1) {
    point(label, x0, y0);
    hand.button(1, true);
    settle();
    point(label, (x0 + x1) / 2, (y0 + y1) / 2);
    point(label, x1, y1);
    hand.button(1, false);
    settle();
  }
  void tap(uint32_t symbol) {
    hand.tap(symbol);
    settle();
  }
  void tap_with(uint32_t held, uint32_t symbol) {
    hand.key(held, true);
    hand.tap(symbol);
    hand.key(held, false);
    settle();
  }
  bool there(const std::string& label) { return app.labels().find(label).has_value(); }

  RealInput hand;
};

}  // namespace attnscope::test
