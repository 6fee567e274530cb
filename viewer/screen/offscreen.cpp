#include "viewer/screen/offscreen.h"

#include <epoxy/egl.h>
#include <fmt/core.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

using Clock = std::chrono::steady_clock;

bool has_extension(const char* name) { return epoxy_has_egl_extension(EGL_NO_DISPLAY, name); }

/// The displays that need no screen, those of graphics cards first. Whether one can be used shows
/// when it is.
std::vector<EGLDisplay> screenless_displays() {
  std::vector<EGLDisplay> displays;
  // A library without these has no such displays, and epoxy ends the program where it is asked.
  if (!epoxy_has_egl() || !has_extension("EGL_EXT_platform_base")) return displays;
  if (has_extension("EGL_EXT_platform_device") && has_extension("EGL_EXT_device_enumeration")) {
    std::array<EGLDeviceEXT, 16> devices{};
    EGLint count = 0;
    if (eglQueryDevicesEXT(static_cast<EGLint>(devices.size()), devices.data(), &count) ==
        EGL_TRUE) {
      for (EGLint i = 0; i < count; ++i) {
        displays.push_back(eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT,
                                                    devices[static_cast<size_t>(i)], nullptr));
      }
    }
  }
  if (has_extension("EGL_MESA_platform_surfaceless")) {
    displays.push_back(
        eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr));
  }
  std::erase(displays, EGL_NO_DISPLAY);
  return displays;
}

/// A context of OpenGL 3.3 on one display, and a buffer to draw in.
class Offscreen : public Screen {
 public:
  Offscreen(EGLDisplay display, WindowSize size) : display_(display) {
    EGLint major = 0, minor = 0;
    if (eglInitialize(display_, &major, &minor) != EGL_TRUE) throw refusal("eglInitialize");
    try {
      make_context();
      resize(size);
    } catch (const Error&) {
      eglTerminate(display_);
      throw;
    }
  }

  ~Offscreen() override {
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    // Takes context and buffer with it.
    eglTerminate(display_);
  }

  WindowSize pixels() const override { return size_; }

  void resize(WindowSize size) override {
    const std::array<EGLint, 5> attributes{EGL_WIDTH, size.width, EGL_HEIGHT, size.height,
                                           EGL_NONE};
    const EGLSurface surface = eglCreatePbufferSurface(display_, config_, attributes.data());
    if (surface == EGL_NO_SURFACE ||
        eglMakeCurrent(display_, surface, surface, context_) != EGL_TRUE) {
      const EGLint code = eglGetError();
      if (surface != EGL_NO_SURFACE) eglDestroySurface(display_, surface);
      throw Error(ErrorCode::resource,
                  fmt::format("OpenGL has no {}x{} pixels here (EGL error {:#x})", size.width,
                              size.height, code));
    }
    if (surface_ != EGL_NO_SURFACE) eglDestroySurface(display_, surface_);
    surface_ = surface;
    size_ = size;
  }

  float scale() const override { return 1; }
  void set_title(const std::string&) override {}
  bool should_close() const override { return closed_; }
  void close() override { closed_ = true; }

  void wait(double seconds) override {
    std::unique_lock lock(mutex_);
    const auto woken = [this] { return woken_; };
    if (seconds < 0) {
      awake_.wait(lock, woken);
    } else {
      awake_.wait_for(lock, std::chrono::duration<double>(seconds), woken);
    }
    woken_ = false;
  }

  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    awake_.notify_all();
  }

  void join_imgui() override { ImGui::GetIO().BackendPlatformName = "attnscope, offscreen"; }
  void leave_imgui() override {}

  void begin_frame() override {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(size_.width), static_cast<float>(size_.height)};
    const Clock::time_point now = Clock::now();
    io.DeltaTime = std::max(1e-6f, std::chrono::duration<float>(now - last_frame_).count());
    last_frame_ = now;
  }

  void swap() override {}

 private:
  static Error refusal(const char* call) {
    return {ErrorCode::unavailable,
            fmt::format("{} failed (EGL error {:#x})", call, eglGetError())};
  }

  void make_context() {
    const std::array<EGLint, 13> wanted{EGL_SURFACE_TYPE,
                                        EGL_PBUFFER_BIT,
                                        EGL_RENDERABLE_TYPE,
                                        EGL_OPENGL_BIT,
                                        EGL_RED_SIZE,
                                        8,
                                        EGL_GREEN_SIZE,
                                        8,
                                        EGL_BLUE_SIZE,
                                        8,
                                        EGL_ALPHA_SIZE,
                                        8,
                                        EGL_NONE};
    EGLint count = 0;
    if (eglChooseConfig(display_, wanted.data(), &config_, 1, &count) != EGL_TRUE || count == 0) {
      throw refusal("eglChooseConfig");
    }
    const std::array<EGLint, 7> version{EGL_CONTEXT_MAJOR_VERSION,
                                        3,
                                        EGL_CONTEXT_MINOR_VERSION,
                                        3,
                                        EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                        EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                        EGL_NONE};
    if (eglBindAPI(EGL_OPENGL_API) != EGL_TRUE) throw refusal("eglBindAPI");
    context_ = eglCreateContext(display_, config_, EGL_NO_CONTEXT, version.data());
    if (context_ == EGL_NO_CONTEXT) throw refusal("eglCreateContext");
  }

  const EGLDisplay display_;
  EGLConfig config_ = nullptr;
  EGLContext context_ = EGL_NO_CONTEXT;
  EGLSurface surface_ = EGL_NO_SURFACE;
  WindowSize size_;
  bool closed_ = false;
  Clock::time_point last_frame_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable awake_;
  bool woken_ = false;
};

}  // namespace

std::unique_ptr<Screen> open_offscreen(WindowSize size) {
  std::string cause = "no EGL";
  for (const EGLDisplay display : screenless_displays()) {
    try {
      return std::make_unique<Offscreen>(display, size);
    } catch (const Error& e) {
      // The next one may be of a card that can; software comes last.
      cause = e.what();
    }
  }
  throw Error(ErrorCode::unavailable,
              "no display, and OpenGL 3.3 cannot draw without one here (" + cause +
                  "): install libegl1 and libgl1-mesa-dri, or run under xvfb-run");
}

}  // namespace attnscope
