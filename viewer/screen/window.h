#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/panels/fonts.h"
#include "viewer/screen/key_events.h"
#include "viewer/screen/screen.h"
#include "viewer/view/window_size.h"

namespace attnscope {

/// A window with an OpenGL 3.3 context and Dear ImGui in it. A hidden one needs no display: without
/// one it is drawn off screen. One at a time; everything but wake() only on the thread that made
/// it.
class Window {
 public:
  struct Settings {
    std::string title = "attnscope";
    std::optional<WindowSize>
        size;  ///< none: first_window_size() of the display; hidden: the usual one
    bool visible = true;
  };
  struct Handlers {
    /// A key that no text field takes; true: that such a field is not to know of either.
    std::function<bool(const KeyChord&)> key;
    std::function<void(const std::string&)> drop;        ///< a file that was dropped on the window
    std::function<void(const KeyChord&)> released = {};  ///< a key that was let go
    /// Whose the next key is shows in a frame that is not drawn yet: keys are kept until then.
    std::function<bool()> waits = {};
  };

  /// Throws Error(unavailable) where there is no display for a visible window, or no OpenGL 3.3.
  explicit Window(const Settings& settings);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }
  void set_title(const std::string& title);
  /// To the nearest size that is one. People cannot make the window smaller than kLeastWindow; a
  /// window manager may all the same.
  void resize(WindowSize size);
  /// In pixels; at least 1.
  int width() const { return pixels().width; }
  int height() const { return pixels().height; }
  float scale() const { return screen_->scale(); }
  const Fonts& fonts() const { return fonts_; }
  /// Letters that are shown from the next frame on, beside the usual ones (load_fonts()): what the
  /// fonts of the window hold is made for what is shown.
  void set_letters(const std::u32string& letters);
  bool should_close() const;
  void close();

  /// Sleeps until something happened or `seconds` are over (negative: for as long as it takes), not
  /// at all while frames are due; then takes the events in.
  void wait(double seconds);
  /// Frames that are due after the last event.
  int frames_due() const { return frames_due_; }
  /// Something has changed: kFramesAfterEvent frames are due.
  void request_frames();
  /// From any thread: ends wait(), and woken() is true once.
  void wake();
  bool woken() { return woken_.exchange(false); }
  static constexpr int kFramesAfterEvent = 3;

  /// Begins a frame of ImGui; `input` is called when the real input is in place, to replace it.
  void begin_frame(const std::function<void()>& input);
  /// Ends it and draws it into the framebuffer that is bound; may be repeated.
  void render();
  void swap();
  void frame_done();

 private:
  WindowSize pixels() const;
  void hand_out_keys();
  void load_letters();

  Handlers handlers_;
  KeyEvents keys_;
  Fonts fonts_;
  std::u32string letters_;
  bool letters_changed_ = false;
  float fonts_scale_ = 1;  ///< that the fonts were made for
  int frames_due_ = kFramesAfterEvent;
  std::atomic<bool> woken_{false};
  std::unique_ptr<Screen> screen_;
};

}  // namespace attnscope
