#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "viewer/commands/key_chord.h"

namespace attnscope {

/// An event of the keyboard as a screen tells it, or the mark of one of the mouse between them.
struct KeyEvent {
  /// text: a letter was typed, after its key went down. mouse: the mouse did something meanwhile.
  enum class What : uint8_t { down, repeat, up, text, mouse };
  What what = What::down;
  std::optional<KeyChord> chord = {};     ///< nothing: nobody listens to it by itself
  std::function<void()> tell_imgui = {};  ///< lets ImGui know, from its next frame on
  bool makes_command = false;             ///< Ctrl, Alt or the like: keys beside it type nothing
  int frames = 0;                         ///< of the mouse: drawn until it is known what it means
};

/// True of a key that a text field uses by itself: it edits the text or moves its cursor.
bool edits_text(const KeyChord& chord);

/// The events of the keyboard since the last frame, handed out in their order, and so that no frame
/// hides any of them. Of one frame ImGui knows only which letters were typed, which keys are down,
/// and that letters come first: a field that takes text gets letters or one key a frame, however
/// many came while a slow one was drawn. Keys also wait for the frames that decide who gets them.
class KeyEvents {
 public:
  /// A click chooses whose keys are in the frame that has it; where the mouse is, a frame has found
  /// out, and the one after it what is there.
  static KeyEvent click() { return {.what = KeyEvent::What::mouse, .frames = 1}; }
  static KeyEvent move() { return {.what = KeyEvent::What::mouse, .frames = 2}; }

  struct Taker {
    std::function<bool()> waits;   ///< nothing is taken before another frame is drawn
    std::function<bool()> typing;  ///< a field takes text in the next frame
    std::function<bool(const KeyChord&)> pressed;  ///< true: ImGui is not to know
    std::function<void(const KeyChord&)> released;
  };

  /// False of what changes nothing and is dropped. A repeat belongs to the chord that went down: it
  /// is none of another one that a second key makes of it (Z is not to become Ctrl+Z), nor of a
  /// command that lasts as long as its key is held.
  bool push(KeyEvent event);
  /// Hands out what comes before the next frame.
  void hand_out(const Taker& taker);
  /// A frame was drawn; `mouse_done`: all that the mouse did was in it.
  void frame_done(bool mouse_done);
  /// No key waits.
  bool done() const;

 private:
  bool fits(const KeyEvent& event, bool typing) const;
  void give(const KeyEvent& event, bool typing, const Taker& taker);
  void press(const KeyEvent& event, bool typing, const Taker& taker);
  bool changes_nothing(const KeyEvent& event);

  struct Down {
    KeyChord chord;
    bool given = false;  ///< to the window, not to a field
  };
  std::deque<KeyEvent> events_;
  std::vector<Down> down_;   ///< keys that are held
  bool drops_text_ = false;  ///< the letter of the repeat that came last is nobody's
  // Of the next frame:
  bool typed_ = false;        ///< a field gets letters
  bool chosen_ = false;       ///< a key went to the window beside a field
  bool edited_ = false;       ///< a field gets a key
  bool let_go_ = false;       ///< a key that edits went up
  bool was_command_ = false;  ///< the letter of the key that went down last is nobody's text
};

}  // namespace attnscope
