#include "web/window/web_screen.h"

#include <emscripten/emscripten.h>
#include <emscripten/html5.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "viewer/commands/commands.h"
#include "viewer/screen/imgui_mouse.h"
#include "viewer/screen/mouse_events.h"
#include "web/window/browser.h"
#include "web/window/web_keys.h"

namespace attnscope {
namespace {

constexpr const char* kCanvas = "#canvas";
/// A notch of a wheel in pixels and in lines, as browsers count them.
constexpr double kNotchPixels = 100, kNotchLines = 3;
/// Two fingers that spread come as a wheel with Ctrl, in steps that are so much smaller.
constexpr double kPinch = 10;

double seconds_now() { return emscripten_get_now() / 1000; }

WebKey web_key(const EmscriptenKeyboardEvent& e) {
  return {e.key, e.code, e.ctrlKey != 0, e.shiftKey != 0, e.altKey != 0, e.metaKey != 0};
}

const char* cursor_name(ImGuiMouseCursor cursor) {
  switch (cursor) {
    case ImGuiMouseCursor_None:
      return "none";
    case ImGuiMouseCursor_TextInput:
      return "text";
    case ImGuiMouseCursor_ResizeAll:
      return "move";
    case ImGuiMouseCursor_ResizeNS:
      return "ns-resize";
    case ImGuiMouseCursor_ResizeEW:
      return "ew-resize";
    case ImGuiMouseCursor_ResizeNESW:
      return "nesw-resize";
    case ImGuiMouseCursor_ResizeNWSE:
      return "nwse-resize";
    case ImGuiMouseCursor_Hand:
      return "pointer";
    case ImGuiMouseCursor_NotAllowed:
      return "not-allowed";
    default:
      return "default";
  }
}

/// The page's canvas, with a context of WebGL 2. Events are kept until wait(), so that nothing
/// happens within a frame.
class WebScreen : public Screen {
 public:
  explicit WebScreen(ScreenEvents events) : events_(std::move(events)) {
    the_one = this;
    EmscriptenWebGLContextAttributes wanted;
    emscripten_webgl_init_context_attributes(&wanted);
    wanted.majorVersion = 2;
    // The picture is copied out of the canvas, which must therefore not be multisampled.
    wanted.alpha = wanted.depth = wanted.stencil = wanted.antialias = EM_FALSE;
    context_ = emscripten_webgl_create_context(kCanvas, &wanted);
    if (context_ <= 0) throw Error(ErrorCode::unavailable, "the browser gives no WebGL 2 here");
    emscripten_webgl_make_context_current(context_);
    browser_watch();
    listen();
  }

  ~WebScreen() override {
    the_one = nullptr;
    emscripten_webgl_destroy_context(context_);
  }

  WindowSize pixels() const override { return size_; }
  /// The page's size is the browser's business.
  void resize(WindowSize) override {}
  float scale() const override { return scale_; }
  void set_title(const std::string& title) override { browser_set_title(title.c_str()); }
  bool should_close() const override { return false; }
  /// A tab is closed by whoever opened it.
  void close() override {}

  void wait(double seconds) override {
    web_screen_turns().sleep = seconds;
    std::vector<KeyEvent> happened = std::exchange(happened_, {});
    if (std::exchange(touched_, false)) events_.input();
    for (KeyEvent& event : happened) events_.key(std::move(event));
  }

  void wake() override {
    if (web_screen_turns().wake) web_screen_turns().wake();
  }

  void join_imgui() override {
    ImGuiIO& io = ImGui::GetIO();
    io.BackendPlatformName = "attnscope, browser";
    for (int key = 0; key < ImGuiKey_COUNT; ++key) io.KeyMap[key] = key;
    io.ClipboardUserData = this;
    io.GetClipboardTextFn = [](void* self) {
      return static_cast<const char*>(static_cast<WebScreen*>(self)->clipboard_.c_str());
    };
    io.SetClipboardTextFn = [](void* self, const char* text) {
      static_cast<WebScreen*>(self)->clipboard_ = text;
      browser_copy(text);
    };
    io.BackendFlags |= ImGuiBackendFlags_HasMouseCursors;
  }
  void leave_imgui() override {}

  void begin_frame() override {
    // Only now: another size empties the canvas, and here it is drawn before anybody sees it.
    if (drawn_size_ != size_) {
      emscripten_set_canvas_element_size(kCanvas, size_.width, size_.height);
      drawn_size_ = size_;
    }
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(size_.width), static_cast<float>(size_.height)};
    const double now = seconds_now();
    io.DeltaTime = std::max(1e-4f, static_cast<float>(now - last_frame_));
    last_frame_ = now;
    constexpr float kNowhere = -std::numeric_limits<float>::max();
    io.MousePos = {kNowhere, kNowhere};
    if (mouse_at_)
      io.MousePos = {static_cast<float>((*mouse_at_)[0]), static_cast<float>((*mouse_at_)[1])};
    give_imgui(mouse_.next());
    if (!mouse_.done()) touch();
    io.MouseWheel = std::exchange(wheel_, 0.0f);
    io.MouseWheelH = std::exchange(wheel_across_, 0.0f);
    std::copy(down_.begin(), down_.end(), io.KeysDown);
    io.KeyCtrl = ctrl_;
    io.KeyShift = shift_;
    io.KeyAlt = alt_;
  }
  bool mouse_done() const override { return mouse_.done(); }

  void swap() override {
    const char* const cursor = cursor_name(ImGui::GetMouseCursor());
    if (cursor == cursor_) return;
    cursor_ = cursor;
    browser_set_cursor(cursor);
  }

  void resized(int width, int height, double scale) {
    size_ = {std::max(1, width), std::max(1, height)};
    scale_ = static_cast<float>(std::clamp(scale, 1.0, 4.0));
    pixels_per_unit_ = scale;
    touch();
  }

  void pasted(const char* text) {
    clipboard_ = text;
    const KeyChord chord{.key = printable_key('V'), .ctrl = true};
    const Modifiers before{ctrl_, shift_, alt_};
    add(KeyEvent::What::down, chord, ImGuiKey_V, {true, false, false});
    add(KeyEvent::What::up, chord, ImGuiKey_V, before);
    touch();
  }

  static WebScreen* the_one;

 private:
  struct Modifiers {
    bool ctrl = false, shift = false, alt = false;
  };

  void touch() {
    touched_ = true;
    wake();
  }

  void listen() {
    const auto self = static_cast<void*>(this);
    const char* const window = EMSCRIPTEN_EVENT_TARGET_WINDOW;
    emscripten_set_mousedown_callback(kCanvas, self, EM_FALSE, on_mouse);
    // A drag may leave the canvas.
    emscripten_set_mouseup_callback(window, self, EM_FALSE, on_mouse);
    emscripten_set_mousemove_callback(window, self, EM_FALSE, on_mouse);
    emscripten_set_mouseleave_callback(kCanvas, self, EM_FALSE, on_mouse);
    emscripten_set_wheel_callback(kCanvas, self, EM_FALSE, on_wheel);
    emscripten_set_keydown_callback(kCanvas, self, EM_FALSE, on_key);
    emscripten_set_keyup_callback(kCanvas, self, EM_FALSE, on_key);
    emscripten_set_blur_callback(window, self, EM_FALSE, on_blur);
  }

  static EM_BOOL on_mouse(int type, const EmscriptenMouseEvent* e, void* self) {
    static_cast<WebScreen*>(self)->take_mouse(type, *e);
    // A press is to give the canvas the keys.
    return EM_FALSE;
  }
  static EM_BOOL on_wheel(int, const EmscriptenWheelEvent* e, void* self) {
    static_cast<WebScreen*>(self)->take_wheel(*e);
    return EM_TRUE;
  }
  static EM_BOOL on_key(int type, const EmscriptenKeyboardEvent* e, void* self) {
    return static_cast<WebScreen*>(self)->take_key(type == EMSCRIPTEN_EVENT_KEYDOWN, *e);
  }
  /// Lets go of all keys: the browser does not tell of those that go up elsewhere.
  static EM_BOOL on_blur(int, const EmscriptenFocusEvent*, void* self) {
    static_cast<WebScreen*>(self)->let_go();
    return EM_FALSE;
  }

  void take_modifiers(const Modifiers& held) {
    ctrl_ = held.ctrl;
    shift_ = held.shift;
    alt_ = held.alt;
  }

  /// `number`: ImGui's key; below 0: none. `held` is what ImGui learns with it.
  void add(KeyEvent::What what, const std::optional<KeyChord>& chord, int number,
           const Modifiers& held) {
    happened_.push_back({what, chord, [this, what, number, held] {
                           take_modifiers(held);
                           if (number < 0) return;
                           down_[static_cast<size_t>(number)] = what != KeyEvent::What::up;
                         }});
  }

  void take_mouse(int type, const EmscriptenMouseEvent& e) {
    take_modifiers({e.ctrlKey || e.metaKey, e.shiftKey != 0, e.altKey != 0});
    touch();
    if (type == EMSCRIPTEN_EVENT_MOUSELEAVE) {
      if (e.buttons == 0) mouse_at_.reset();
      return;
    }
    take_place(e);
    happened_.push_back(KeyEvents::move());
    if (type == EMSCRIPTEN_EVENT_MOUSEMOVE) return;
    // The browser's second button is the middle one.
    constexpr std::array kButtons{0, 2, 1};
    if (e.button >= kButtons.size()) return;
    mouse_.button(kButtons[e.button], type == EMSCRIPTEN_EVENT_MOUSEDOWN, seconds_now());
    happened_.push_back(KeyEvents::click());
  }

  void take_place(const EmscriptenMouseEvent& e) {
    const double x = static_cast<double>(e.clientX) * pixels_per_unit_;
    const double y = static_cast<double>(e.clientY) * pixels_per_unit_;
    mouse_at_ = {x, y};
    mouse_.moved(x, y);
  }

  void take_wheel(const EmscriptenWheelEvent& e) {
    take_place(e.mouse);
    take_modifiers(
        {e.mouse.ctrlKey || e.mouse.metaKey, e.mouse.shiftKey != 0, e.mouse.altKey != 0});
    double notch = 1;
    if (e.deltaMode == DOM_DELTA_PIXEL) notch = kNotchPixels;
    if (e.deltaMode == DOM_DELTA_LINE) notch = kNotchLines;
    if (e.deltaMode == DOM_DELTA_PIXEL && e.mouse.ctrlKey &&
        std::abs(e.deltaY) < kNotchPixels / 2) {
      notch /= kPinch;
    }
    // Browsers count downwards, and to the right.
    wheel_ -= static_cast<float>(e.deltaY / notch);
    wheel_across_ -= static_cast<float>(e.deltaX / notch);
    touch();
  }

  /// True where the browser is to do nothing else with the key.
  EM_BOOL take_key(bool down, const EmscriptenKeyboardEvent& e) {
    const WebKey key = web_key(e);
    const Modifiers held{key.ctrl || key.meta, key.shift, key.alt};
    // Frames are the window's to ask for: repeats of a held key change nothing.
    wake();
    const auto chord = chord_of_web_key(key);
    const int number = imgui_key_of_web_key(key);
    if (!down) {
      add(KeyEvent::What::up, chord, number, held);
      // Keys that are let go of while Command is held are not told of.
      if (key.key == "Meta") let_go();
      return EM_FALSE;
    }
    const bool typing = ImGui::GetIO().WantTextInput;
    // Pasting comes as an event of its own, with what is pasted.
    if (number == ImGuiKey_V && (key.ctrl || key.meta)) return EM_FALSE;
    add(e.repeat ? KeyEvent::What::repeat : KeyEvent::What::down, chord, number, held);
    happened_.back().makes_command = key.key == "Control" || key.key == "Alt" || key.key == "Meta";
    if (const std::string text(text_of_web_key(key)); !text.empty()) {
      happened_.push_back({KeyEvent::What::text, std::nullopt,
                           [text] { ImGui::GetIO().AddInputCharactersUTF8(text.c_str()); }});
    }
    if (!chord) return EM_FALSE;
    const bool bare = !chord->ctrl && !chord->alt && !(chord->key >= Key::f1);
    return command_on(*chord) || bare || (typing && number >= 0) ? EM_TRUE : EM_FALSE;
  }

  void let_go() {
    happened_.push_back({KeyEvent::What::up, std::nullopt, [this] {
                           down_.fill(false);
                           take_modifiers({});
                         }});
    // Keys that are held for as long as something is seen.
    for (const CommandId command : {CommandId::hold_other, CommandId::magnify}) {
      const auto held = chord_of_command(command);
      if (held) add(KeyEvent::What::up, held, -1, {});
    }
    touch();
  }

  static std::optional<KeyChord> chord_of_command(CommandId id) {
    const auto& chords = command_of(id).chords;
    return chords.empty() ? std::nullopt : std::optional(parse_chord(chords.front()));
  }

  const ScreenEvents events_;
  EMSCRIPTEN_WEBGL_CONTEXT_HANDLE context_ = 0;
  WindowSize size_, drawn_size_{0, 0};
  float scale_ = 1;
  double pixels_per_unit_ = 1;
  std::vector<KeyEvent> happened_;
  bool touched_ = false;
  MouseEvents mouse_;
  std::optional<std::array<double, 2>> mouse_at_;  ///< nothing: it is not over the window
  float wheel_ = 0, wheel_across_ = 0;
  std::array<bool, ImGuiKey_COUNT> down_{};
  bool ctrl_ = false, shift_ = false, alt_ = false;
  std::string clipboard_;
  const char* cursor_ = "";
  double last_frame_ = seconds_now();
};

WebScreen* WebScreen::the_one = nullptr;

}  // namespace

WebScreenTurns& web_screen_turns() {
  static WebScreenTurns turns;
  return turns;
}

std::unique_ptr<Screen> open_screen(const std::string& title, std::optional<WindowSize>, bool,
                                    ScreenEvents events) {
  auto screen = std::make_unique<WebScreen>(std::move(events));
  screen->set_title(title);
  return screen;
}

}  // namespace attnscope

// Called by browser.js.
extern "C" {
EMSCRIPTEN_KEEPALIVE void web_resized(int width, int height, double scale) {
  using attnscope::WebScreen;
  if (WebScreen::the_one != nullptr) WebScreen::the_one->resized(width, height, scale);
}
EMSCRIPTEN_KEEPALIVE void web_pasted(const char* text) {
  using attnscope::WebScreen;
  if (WebScreen::the_one != nullptr) WebScreen::the_one->pasted(text);
}
}
