#include "viewer/screen/window.h"

#include <imgui.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "viewer/gl/gl_api.h"
#include "viewer/screen/open_screen.h"

namespace attnscope {
namespace {

/// True where a text field of ImGui takes what is typed, in the frame that comes next: it was drawn
/// in the last one and has the keys. (io.WantTextInput is a frame late.)
bool takes_text() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  return g.ActiveId != 0 && g.ActiveIdIsAlive == g.ActiveId && g.InputTextState.ID == g.ActiveId;
}

}  // namespace

Window::Window(const Settings& settings)
    : screen_(open_screen(settings.title,
                          settings.size ? std::optional(clamped(*settings.size)) : std::nullopt,
                          settings.visible,
                          {[this] { request_frames(); },
                           [this](KeyEvent event) {
                             if (keys_.push(std::move(event))) request_frames();
                           },
                           [this](const std::string& path) {
                             if (handlers_.drop) handlers_.drop(path);
                           }})) {
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  screen_->join_imgui();
  if (!ImGui_ImplOpenGL3_Init(gl::kShaderVersion)) {
    screen_->leave_imgui();
    ImGui::DestroyContext();
    throw Error(ErrorCode::unavailable, "the window needs OpenGL 3.3: install libgl1");
  }
  load_letters();
}

void Window::load_letters() {
  fonts_scale_ = scale();
  fonts_ = load_fonts(fonts_scale_, letters_);
  letters_changed_ = false;
}

Window::~Window() {
  ImGui_ImplOpenGL3_Shutdown();
  screen_->leave_imgui();
  ImGui::DestroyContext();
}

void Window::set_title(const std::string& title) { screen_->set_title(title); }

void Window::set_letters(const std::u32string& letters) {
  letters_changed_ = letters_changed_ || letters != letters_;
  letters_ = letters;
}

void Window::resize(WindowSize size) {
  screen_->resize(clamped(size));
  request_frames();
}

WindowSize Window::pixels() const {
  const WindowSize size = screen_->pixels();
  return {std::max(1, size.width), std::max(1, size.height)};
}

bool Window::should_close() const { return screen_->should_close(); }

void Window::close() { screen_->close(); }

void Window::wait(double seconds) {
  screen_->wait(frames_due_ > 0 ? 0 : seconds);
  hand_out_keys();
}

void Window::hand_out_keys() {
  keys_.hand_out({[this] { return handlers_.waits && handlers_.waits(); }, takes_text,
                  [this](const KeyChord& chord) { return handlers_.key && handlers_.key(chord); },
                  [this](const KeyChord& chord) {
                    if (handlers_.released) handlers_.released(chord);
                  }});
  // The others are for frames to come.
  if (!keys_.done()) request_frames();
}

void Window::request_frames() { frames_due_ = kFramesAfterEvent; }

void Window::wake() {
  woken_ = true;
  screen_->wake();
}

void Window::begin_frame(const std::function<void()>& input) {
  ImGui_ImplOpenGL3_NewFrame();
  // The backend's own objects are there now, and ImGui has not locked its fonts for a frame yet.
  if (letters_changed_ || fonts_scale_ != scale()) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    load_letters();
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
  screen_->begin_frame();
  input();
  ImGui::NewFrame();
}

void Window::render() {
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void Window::swap() { screen_->swap(); }

void Window::frame_done() {
  frames_due_ = std::max(0, frames_due_ - 1);
  keys_.frame_done(screen_->mouse_done());
}

}  // namespace attnscope
