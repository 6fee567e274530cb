#include "viewer/screen/glfw_screen.h"

#include <epoxy/gl.h>
// After epoxy, which brings OpenGL's declarations.
#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "viewer/commands/key_chord.h"
#include "viewer/screen/imgui_mouse.h"
#include "viewer/screen/mouse_events.h"
#include "viewer/screen/window_icon.h"

namespace attnscope {
namespace {

std::string& last_glfw_error() {
  static std::string text;
  return text;
}

void remember_error(int, const char* text) { last_glfw_error() = text == nullptr ? "" : text; }

void start_glfw() {
  glfwSetErrorCallback(remember_error);
  const std::string advice = "set DISPLAY or WAYLAND_DISPLAY, or run under xvfb-run";
  if (!has_display()) throw Error(ErrorCode::unavailable, "no display: " + advice);
  if (glfwInit() == GLFW_FALSE) {
    throw Error(ErrorCode::unavailable,
                "no display: " + advice + " (" + one_line(last_glfw_error()) + ")");
  }
}

constexpr std::array kNamed{std::pair{GLFW_KEY_LEFT, Key::left},
                            std::pair{GLFW_KEY_RIGHT, Key::right},
                            std::pair{GLFW_KEY_UP, Key::up},
                            std::pair{GLFW_KEY_DOWN, Key::down},
                            std::pair{GLFW_KEY_PAGE_UP, Key::page_up},
                            std::pair{GLFW_KEY_PAGE_DOWN, Key::page_down},
                            std::pair{GLFW_KEY_HOME, Key::home},
                            std::pair{GLFW_KEY_END, Key::end},
                            std::pair{GLFW_KEY_INSERT, Key::insert},
                            std::pair{GLFW_KEY_DELETE, Key::del},
                            std::pair{GLFW_KEY_BACKSPACE, Key::backspace},
                            std::pair{GLFW_KEY_ENTER, Key::enter},
                            std::pair{GLFW_KEY_KP_ENTER, Key::enter},
                            std::pair{GLFW_KEY_ESCAPE, Key::escape},
                            std::pair{GLFW_KEY_TAB, Key::tab},
                            std::pair{GLFW_KEY_SPACE, Key::space}};

/// GLFW's codes of printable keys are the ASCII codes of a US keyboard.
bool is_letter_or_digit(int key) {
  return (key >= GLFW_KEY_A && key <= GLFW_KEY_Z) || (key >= GLFW_KEY_0 && key <= GLFW_KEY_9);
}

/// The chord of a key press of GLFW: letters, digits and named keys, and any key with Ctrl or Alt.
/// Nothing for the signs that keyboards have in different places: they come as characters.
std::optional<KeyChord> chord_of_key(int key, int mods) {
  KeyChord chord;
  chord.ctrl = (mods & GLFW_MOD_CONTROL) != 0;
  chord.shift = (mods & GLFW_MOD_SHIFT) != 0;
  chord.alt = (mods & GLFW_MOD_ALT) != 0;
  for (const auto& [code, named] : kNamed) {
    if (code != key) continue;
    chord.key = named;
    return normalised(chord);
  }
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) {
    chord.key = static_cast<Key>(static_cast<int>(Key::f1) + key - GLFW_KEY_F1);
    return normalised(chord);
  }
  const bool printable = key > ' ' && key < 127;
  if (!printable || (!is_letter_or_digit(key) && !chord.ctrl && !chord.alt)) return std::nullopt;
  // Shift and a digit make a sign, which comes as a character.
  if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9 && chord.shift && !chord.ctrl && !chord.alt) {
    return std::nullopt;
  }
  chord.key = printable_key(static_cast<char>(key));
  return normalised(chord);
}

/// True of keys that make commands of the keys beside them: Ctrl, Alt, and the system's key.
bool makes_command(int key) {
  return key == GLFW_KEY_LEFT_CONTROL || key == GLFW_KEY_RIGHT_CONTROL ||
         key == GLFW_KEY_LEFT_ALT || key == GLFW_KEY_RIGHT_ALT || key == GLFW_KEY_LEFT_SUPER ||
         key == GLFW_KEY_RIGHT_SUPER;
}

/// The chord of a typed sign that is neither letter, digit nor space.
std::optional<KeyChord> chord_of_character(unsigned code) {
  if (code <= ' ' || code >= 127) return std::nullopt;
  const auto c = static_cast<char>(code);
  const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (word) return std::nullopt;
  KeyChord chord;
  chord.key = printable_key(c);
  return normalised(chord);
}

class GlfwScreen : public Screen {
 public:
  GlfwScreen(const std::string& title, std::optional<WindowSize> wanted, bool visible,
             ScreenEvents events)
      : events_(std::move(events)) {
    const WindowSize size = wanted.value_or(WindowSize{});
    const bool fits_display = visible && !wanted;
    start_glfw();
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
    glfwWindowHint(GLFW_VISIBLE, visible && !fits_display ? GLFW_TRUE : GLFW_FALSE);
    window_ = glfwCreateWindow(size.width, size.height, title.c_str(), nullptr, nullptr);
    if (window_ == nullptr) {
      const std::string cause = one_line(last_glfw_error());
      glfwTerminate();
      throw Error(ErrorCode::unavailable, "the window needs OpenGL 3.3: " + cause);
    }
    glfwSetWindowSizeLimits(window_, kLeastWindow.width, kLeastWindow.height, GLFW_DONT_CARE,
                            GLFW_DONT_CARE);
    set_icon();
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(visible ? 1 : 0);
    listen();
    find_scale();
    if (fits_display) {
      resize(first_window_size(scale_, work_area()));
      glfwShowWindow(window_);
    }
  }

  ~GlfwScreen() override {
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  WindowSize pixels() const override {
    WindowSize size;
    glfwGetFramebufferSize(window_, &size.width, &size.height);
    return size;
  }
  void resize(WindowSize size) override { glfwSetWindowSize(window_, size.width, size.height); }
  float scale() const override { return scale_; }
  void set_title(const std::string& title) override { glfwSetWindowTitle(window_, title.c_str()); }
  bool should_close() const override { return glfwWindowShouldClose(window_) != 0; }
  void close() override { glfwSetWindowShouldClose(window_, GLFW_TRUE); }

  void wait(double seconds) override {
    if (seconds < 0) {
      glfwWaitEvents();
    } else if (seconds == 0) {
      glfwPollEvents();
    } else {
      glfwWaitEventsTimeout(seconds);
    }
  }
  void wake() override { glfwPostEmptyEvent(); }

  void join_imgui() override {
    ImGui_ImplGlfw_InitForOpenGL(window_, true);
    // In place of those of ImGui's backend, which is told in a frame's time.
    listen_to_keys();
  }
  void leave_imgui() override { ImGui_ImplGlfw_Shutdown(); }
  void begin_frame() override {
    ImGui_ImplGlfw_NewFrame();
    feed_mouse();
  }
  bool mouse_done() const override { return mouse_.done(); }
  void swap() override { glfwSwapBuffers(window_); }

 private:
  static GlfwScreen& of(GLFWwindow* window) {
    return *static_cast<GlfwScreen*>(glfwGetWindowUserPointer(window));
  }

  /// In the sizes that desktops ask for.
  void set_icon() {
    std::vector<std::vector<uint8_t>> pixels;
    std::vector<GLFWimage> images;
    for (const int side : {16, 32, 48, 128}) {
      pixels.push_back(window_icon(side));
      images.push_back({side, side, pixels.back().data()});
    }
    glfwSetWindowIcon(window_, static_cast<int>(images.size()), images.data());
  }

  void listen() {
    glfwSetWindowUserPointer(window_, this);
    glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double x, double y) {
      of(w).mouse_.moved(x, y);
      of(w).events_.key(KeyEvents::move());
      of(w).events_.input();
    });
    glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int button, int action, int) {
      of(w).mouse_.button(button, action == GLFW_PRESS, glfwGetTime());
      of(w).events_.key(KeyEvents::click());
      of(w).events_.input();
    });
    glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double) { of(w).events_.input(); });
    glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int) { of(w).events_.input(); });
    glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int) { of(w).events_.input(); });
    glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) { of(w).events_.input(); });
    glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { of(w).events_.input(); });
    glfwSetDropCallback(window_, [](GLFWwindow* w, int count, const char** paths) {
      of(w).events_.input();
      if (count > 0) of(w).events_.drop(paths[0]);
    });
  }

  void listen_to_keys() {
    glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int code, int action, int mods) {
      of(w).events_.key({action == GLFW_PRESS     ? KeyEvent::What::down
                         : action == GLFW_RELEASE ? KeyEvent::What::up
                                                  : KeyEvent::What::repeat,
                         chord_of_key(key, mods),
                         [=] { ImGui_ImplGlfw_KeyCallback(w, key, code, action, mods); },
                         makes_command(key)});
    });
    glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned code) {
      of(w).events_.key({KeyEvent::What::text, chord_of_character(code),
                         [=] { ImGui_ImplGlfw_CharCallback(w, code); }});
    });
  }

  /// Of the first display, in the window's units; 0 × 0: not known.
  static WindowSize work_area() {
    WindowSize area{0, 0};
    GLFWmonitor* const monitor = glfwGetPrimaryMonitor();
    if (monitor != nullptr) {
      glfwGetMonitorWorkarea(monitor, nullptr, nullptr, &area.width, &area.height);
    }
    return area;
  }

  void find_scale() {
    float scale_y = 1;
    glfwGetWindowContentScale(window_, &scale_, &scale_y);
    // Where the window's units are larger than pixels, they bear a part of the scale already.
    int units = 0, unit_rows = 0;
    glfwGetWindowSize(window_, &units, &unit_rows);
    if (units > 0) scale_ *= static_cast<float>(units) / static_cast<float>(pixels().width);
    scale_ = std::clamp(scale_, 1.0f, 4.0f);
  }

  /// ImGui's own backend has only told where the mouse is now, and which buttons were down at all.
  void feed_mouse() {
    give_imgui(mouse_.next());
    if (!mouse_.done()) events_.input();
  }

  GLFWwindow* window_ = nullptr;
  const ScreenEvents events_;
  MouseEvents mouse_;
  float scale_ = 1;
};

}  // namespace

bool has_display() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
}

std::unique_ptr<Screen> open_glfw_screen(const std::string& title, std::optional<WindowSize> size,
                                         bool visible, ScreenEvents events) {
  return std::make_unique<GlfwScreen>(title, size, visible, std::move(events));
}

}  // namespace attnscope
