#include "viewer/app/window.h"

#include <epoxy/gl.h>
// After epoxy, which brings OpenGL's declarations.
#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/base/error.h"
#include "viewer/app/glfw_keys.h"

namespace attnscope {
namespace {

std::string& last_glfw_error() {
  static std::string text;
  return text;
}

void remember_error(int, const char* text) { last_glfw_error() = text == nullptr ? "" : text; }

bool has_display() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
}

void start_glfw() {
  glfwSetErrorCallback(remember_error);
  const std::string advice = "set DISPLAY or WAYLAND_DISPLAY, or run under xvfb-run";
  if (!has_display()) throw Error(ErrorCode::unavailable, "no display: " + advice);
  if (glfwInit() == GLFW_FALSE) {
    throw Error(ErrorCode::unavailable,
                "no display: " + advice + " (" + one_line(last_glfw_error()) + ")");
  }
}

}  // namespace

Window& Window::of(GLFWwindow* window) {
  return *static_cast<Window*>(glfwGetWindowUserPointer(window));
}

Window::Window(const Settings& settings) {
  start_glfw();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_VISIBLE, settings.visible ? GLFW_TRUE : GLFW_FALSE);
  const WindowSize size = clamped(settings.size);
  window_ = glfwCreateWindow(size.width, size.height, settings.title.c_str(), nullptr, nullptr);
  if (window_ == nullptr) {
    const std::string cause = one_line(last_glfw_error());
    glfwTerminate();
    throw Error(ErrorCode::unavailable, "the window needs OpenGL 3.3: " + cause);
  }
  glfwSetWindowSizeLimits(window_, kLeastWindow.width, kLeastWindow.height, GLFW_DONT_CARE,
                          GLFW_DONT_CARE);
  glfwMakeContextCurrent(window_);
  glfwSwapInterval(settings.visible ? 1 : 0);
  glfwSetWindowUserPointer(window_, this);
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double x, double y) {
    of(w).mouse_.moved(x, y);
    of(w).request_frames();
  });
  glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int button, int action, int) {
    of(w).mouse_.button(button, action == GLFW_PRESS, glfwGetTime());
    of(w).request_frames();
  });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double) { of(w).request_frames(); });
  glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int, int action, int mods) {
    of(w).on_key(key, action, mods);
  });
  glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned code) { of(w).on_character(code); });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int) { of(w).request_frames(); });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int) { of(w).request_frames(); });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) { of(w).request_frames(); });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { of(w).request_frames(); });
  glfwSetDropCallback(window_, [](GLFWwindow* w, int count, const char** paths) {
    of(w).request_frames();
    if (count > 0 && of(w).handlers_.drop) of(w).handlers_.drop(paths[0]);
  });
  float scale_y = 1;
  glfwGetWindowContentScale(window_, &scale_, &scale_y);
  // Where the window's units are larger than pixels, they bear a part of the scale already.
  int units = 0, unit_rows = 0;
  glfwGetWindowSize(window_, &units, &unit_rows);
  if (units > 0) scale_ *= static_cast<float>(units) / static_cast<float>(width());
  scale_ = std::clamp(scale_, 1.0f, 4.0f);
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330 core");
  fonts_ = load_fonts(scale_, letters_);
}

Window::~Window() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  ImGui::DestroyContext();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

void Window::set_title(const std::string& title) { glfwSetWindowTitle(window_, title.c_str()); }

void Window::set_letters(const std::u32string& letters) {
  letters_changed_ = letters_changed_ || letters != letters_;
  letters_ = letters;
}

void Window::resize(WindowSize size) {
  const WindowSize within = clamped(size);
  glfwSetWindowSize(window_, within.width, within.height);
  request_frames();
}

WindowSize Window::pixels() const {
  WindowSize size;
  glfwGetFramebufferSize(window_, &size.width, &size.height);
  return {std::max(1, size.width), std::max(1, size.height)};
}

bool Window::should_close() const { return glfwWindowShouldClose(window_) != 0; }

void Window::close() { glfwSetWindowShouldClose(window_, GLFW_TRUE); }

void Window::wait(double seconds) {
  if (frames_due_ > 0) {
    glfwPollEvents();
  } else if (seconds < 0) {
    glfwWaitEvents();
  } else {
    glfwWaitEventsTimeout(seconds);
  }
}

void Window::request_frames() { frames_due_ = kFramesAfterEvent; }

void Window::wake() {
  woken_ = true;
  glfwPostEmptyEvent();
}

/// ImGui's own backend has only told where the mouse is now, and which buttons were down at all.
void Window::feed_mouse() {
  const MouseEvents::State mouse = mouse_.next();
  ImGuiIO& io = ImGui::GetIO();
  std::copy(mouse.down.begin(), mouse.down.end(), io.MouseDown);
  if (mouse.at) {
    io.MousePos = {static_cast<float>((*mouse.at)[0]), static_cast<float>((*mouse.at)[1])};
  }
  // By its frames' times ImGui would take two clicks in slow frames for single ones.
  io.MouseDoubleClickTime = mouse.repeated ? std::numeric_limits<float>::max() : 0;
  if (!mouse_.done()) request_frames();
}

void Window::begin_frame(const std::function<void()>& input) {
  ImGui_ImplOpenGL3_NewFrame();
  // The backend's own objects are there now, and ImGui has not locked its fonts for a frame yet.
  if (letters_changed_) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    fonts_ = load_fonts(scale_, letters_);
    ImGui_ImplOpenGL3_CreateFontsTexture();
    letters_changed_ = false;
  }
  ImGui_ImplGlfw_NewFrame();
  feed_mouse();
  input();
  ImGui::NewFrame();
}

void Window::render() {
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void Window::swap() { glfwSwapBuffers(window_); }

void Window::frame_done() { frames_due_ = std::max(0, frames_due_ - 1); }

void Window::on_key(int key, int action, int mods) {
  request_frames();
  if (action == GLFW_RELEASE || !handlers_.key || ImGui::GetIO().WantTextInput) return;
  if (const auto chord = chord_of_key(key, mods)) handlers_.key(*chord);
}

void Window::on_character(unsigned code) {
  request_frames();
  if (!handlers_.key || ImGui::GetIO().WantTextInput) return;
  if (const auto chord = chord_of_character(code)) handlers_.key(*chord);
}

}  // namespace attnscope
