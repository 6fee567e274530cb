#pragma once

#include <functional>
#include <string>

#include "viewer/screen/key_events.h"
#include "viewer/view/window_size.h"

namespace attnscope {

/// Handlers of the desktop's events for a screen. All are called within Screen::wait().
struct ScreenEvents {
  std::function<void()> input;        ///< anything but a key: something may look different now
  std::function<void(KeyEvent)> key;  ///< and clicks of the mouse, for their order
  std::function<void(const std::string&)> drop;  ///< a file was dropped
};

/// Where a window's pixels go and its input comes from: a window of the desktop, or a buffer that
/// nobody sees. It has an OpenGL context, which is current on the thread that made it; all but
/// wake() is for that thread alone.
class Screen {
 public:
  virtual ~Screen() = default;

  /// In pixels.
  virtual WindowSize pixels() const = 0;
  /// Throws Error(resource) where there cannot be so many pixels.
  virtual void resize(WindowSize size) = 0;
  /// The display's, 1 to 4. It may change between two frames.
  virtual float scale() const = 0;
  virtual void set_title(const std::string& title) = 0;
  virtual bool should_close() const = 0;
  virtual void close() = 0;
  /// Sleeps until something happened or `seconds` are over (negative: for as long as it takes),
  /// then takes the events in.
  virtual void wait(double seconds) = 0;
  /// From any thread: ends wait().
  virtual void wake() = 0;
  /// Takes part in ImGui's context, from when it is there until before it goes.
  virtual void join_imgui() = 0;
  virtual void leave_imgui() = 0;
  /// Tells ImGui its size, the time and the mouse; before ImGui's own NewFrame.
  virtual void begin_frame() = 0;
  /// True where the frame that was begun last has all that the mouse did until then.
  virtual bool mouse_done() const { return true; }
  virtual void swap() = 0;
};

}  // namespace attnscope
