#include "viewer/screen/key_events.h"

#include <algorithm>
#include <utility>

#include "viewer/commands/commands.h"

namespace attnscope {
namespace {

/// True of a key that types: the event of its letter follows, which says more.
bool is_typed(const KeyChord& chord) {
  return !chord.ctrl && !chord.alt && (chord.key < Key::first_named || chord.key == Key::space);
}

}  // namespace

bool edits_text(const KeyChord& chord) {
  switch (chord.key) {
    case Key::escape:
    case Key::enter:
    case Key::tab:
    case Key::up:
    case Key::down:
    case Key::page_up:
    case Key::page_down:
      return false;
    case Key::left:
    case Key::right:
    case Key::home:
    case Key::end:
    case Key::insert:
    case Key::del:
    case Key::backspace:
    case Key::space:
      return true;
    default:
      break;
  }
  if (chord.key >= Key::f1) return false;
  const bool edits = chord.key == Key{'A'} || chord.key == Key{'C'} || chord.key == Key{'V'} ||
                     chord.key == Key{'X'} || chord.key == Key{'Y'} || chord.key == Key{'Z'};
  return !chord.ctrl || edits;
}

/// Of a repeat, whose chord went down as it is; of keys that are held, as they go down and up.
bool KeyEvents::changes_nothing(const KeyEvent& event) {
  if (event.what == KeyEvent::What::mouse) return false;
  if (event.what == KeyEvent::What::text) return drops_text_;
  drops_text_ = false;
  if (!event.chord) return false;
  const auto held = std::find_if(down_.begin(), down_.end(), [&](const Down& each) {
    return each.chord.key == event.chord->key;
  });
  if (event.what == KeyEvent::What::repeat) {
    if (held == down_.end() || !(held->chord == *event.chord)) return true;
    const auto command = command_on(*event.chord);
    const bool lasts = command && lasts_while_held(*command);
    drops_text_ = lasts && held->given;
    return lasts;
  }
  if (held != down_.end()) down_.erase(held);
  if (event.what == KeyEvent::What::down) down_.push_back({*event.chord});
  return false;
}

bool KeyEvents::push(KeyEvent event) {
  if (changes_nothing(event)) return false;
  if (event.what == KeyEvent::What::mouse && !events_.empty() &&
      events_.back().what == KeyEvent::What::mouse) {
    events_.back().frames = std::max(events_.back().frames, event.frames);
  } else {
    events_.push_back(std::move(event));
  }
  return true;
}

bool KeyEvents::done() const {
  return std::all_of(events_.begin(), events_.end(),
                     [](const KeyEvent& event) { return event.what == KeyEvent::What::mouse; });
}

void KeyEvents::frame_done(bool mouse_done) {
  typed_ = chosen_ = edited_ = let_go_ = false;
  if (!mouse_done) return;
  std::erase_if(events_, [](KeyEvent& event) {
    return event.what == KeyEvent::What::mouse && --event.frames <= 0;
  });
}

void KeyEvents::hand_out(const Taker& taker) {
  while (!events_.empty() && !taker.waits()) {
    const bool typing = taker.typing();
    if (!fits(events_.front(), typing)) return;
    const KeyEvent event = std::move(events_.front());
    events_.pop_front();
    give(event, typing, taker);
  }
}

/// True of an event that can be in the next frame, beside the events that it has already.
bool KeyEvents::fits(const KeyEvent& event, bool typing) const {
  if (event.what == KeyEvent::What::mouse || edited_) return false;
  if (!typing || event.what == KeyEvent::What::up) return true;
  if (event.what == KeyEvent::What::text) return !chosen_;
  const bool types = !event.makes_command && (!event.chord || is_typed(*event.chord));
  const bool edits = event.chord && edits_text(*event.chord);
  return types || (!typed_ && !(edits && let_go_));
}

void KeyEvents::give(const KeyEvent& event, bool typing, const Taker& taker) {
  switch (event.what) {
    case KeyEvent::What::down:
    case KeyEvent::What::repeat:
      press(event, typing, taker);
      break;
    case KeyEvent::What::up:
      if (event.chord) taker.released(*event.chord);
      event.tell_imgui();
      let_go_ = let_go_ || (event.chord && !is_typed(*event.chord));
      break;
    case KeyEvent::What::text:
      if (!typing) {
        if (event.chord) taker.pressed(*event.chord);
      } else if (!was_command_) {
        event.tell_imgui();
        typed_ = true;
      }
      break;
    case KeyEvent::What::mouse:
      break;
  }
}

void KeyEvents::press(const KeyEvent& event, bool typing, const Taker& taker) {
  const bool types = !event.chord || is_typed(*event.chord);
  if (!event.makes_command) was_command_ = types && !typing;
  bool taken = false;
  if (event.chord && !(typing && (types || edits_text(*event.chord)))) {
    for (Down& each : down_) each.given = each.given || each.chord == *event.chord;
    taken = taker.pressed(*event.chord);
    chosen_ = chosen_ || typing;
  }
  // ImGui repeats what is held by itself.
  if (taken || event.what == KeyEvent::What::repeat) return;
  event.tell_imgui();
  edited_ = typing && event.chord && !types;
}

}  // namespace attnscope
