#include "viewer/app/viewer_app.h"

#include <imgui.h>

#include "core/base/error.h"
#include "viewer/app/copied_text.h"
#include "viewer/app/picture_file.h"
#include "viewer/commands/command_actions.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/comparison.h"
#include "viewer/view/pin_places.h"
#include "viewer/view/view_actions.h"

// The effects of keys and commands on the window, and the files and texts that they write and copy.

namespace attnscope {

void ViewerApp::save_session(const std::filesystem::path& file, bool replaces) {
  if (!document_) throw usage_error("no capture is open");
  if (sample_) throw usage_error("the sample goes when the window is closed: save it first");
  write_session(document_->session(window_->width(), window_->height()), document_->session_heads(),
                file, settings_.force || replaces);
}

void ViewerApp::write_session_or_fail() {
  std::filesystem::path file = settings_.session;
  if (file.empty() && document_) {
    const std::filesystem::path name = document_->origin.name();
    // Of maps on another machine: in the folder that the window was opened from.
    const bool remote = document_->remote != nullptr;
    file = (remote ? name.filename() : name).string() + ".session";
  }
  try {
    // A session replaces an older one of the same name, and nothing else.
    save_session(file, is_session_file(file));
    tell("session saved: " + told_path(file));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) return fail("The session cannot be saved", e.what());
    tell(std::string("nothing was written: ") + e.what());
  }
}

std::string ViewerApp::shown_heads(const ViewState& state) const {
  if (!state.against()) return document_->picker.title(state.head);
  return sides_text(document_->picker.values(state.head),
                    document_->other_picker.values(state.against()->other),
                    document_->has_second());
}

/// Under the first name with a number that is free. A slip of a hand is told, anything else shown
/// in a dialog.
void ViewerApp::write_first_free(const std::string& name, const std::string& ending,
                                 const std::string& failure,
                                 const std::function<void(const std::filesystem::path&)>& write) {
  try {
    for (int number = 1;; ++number) {
      const std::filesystem::path file = name + "-" + std::to_string(number) + ending;
      // The name of a folder ends in a slash, which a file of that name has not.
      if (std::filesystem::exists(file.has_filename() ? file : file.parent_path())) continue;
      return write(file);
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) return fail(failure, e.what());
    tell(std::string("nothing was written: ") + e.what());
  }
}

void ViewerApp::press(const KeyChord& chord) {
  window_->request_frames();
  changed_ = true;
  if (command_on(chord) == CommandId::picture) {
    run_command(CommandId::picture);
  } else if (!dialogs_.press(chord)) {
    press_on_panels(chord);
  }
}

void ViewerApp::press_on_panels(const KeyChord& chord) {
  if (panels_.atlas().takes(chord, frame_ && frame_->is_on_map())) {
    panels_.atlas().press(chord);
    return;
  }
  const auto command = command_on(chord);
  if (command == CommandId::go_to_pin) {
    const int64_t number =
        static_cast<int64_t>(chord.key) - static_cast<int64_t>(printable_key('0'));
    if (!document_) return;
    const ViewState& state = document_->history.now();
    act_or_tell(go_to_pin(state, document_->call_of(state.head), number));
  } else if (command == CommandId::magnify) {
    magnify(true);
  } else if (command) {
    run_command(*command);
  } else if (chord.key == Key::escape && document_ && !ImGui::GetIO().WantTextInput) {
    if (!panels_.cancel_drag()) release_choice();
  }
}

/// Leads back from what hides the most: a pane that is alone, then the film of words, then that of
/// a query.
void ViewerApp::release_choice() {
  const ViewState& state = document_->history.now();
  if (state.maximised) {
    act(action::Maximise{});
  } else if (!state.words.chosen.empty()) {
    WordsLook look = state.words;
    look.chosen.clear();
    act(action::SetWords{look});
  } else if (state.query) {
    act(action::DropQuery{});
  }
}

/// Under the lowest free number, or the pin that is there away.
void ViewerApp::toggle_pin() {
  const auto& readout = frame_->readout();
  if (!readout) return tell("the mouse is over no entry of the map: there is nothing to pin");
  const Pins& pins = document_->history.now().pins;
  const Pin place{readout->point.query, readout->point.key};
  if (const auto number = pins.number_of(place)) {
    act_or_tell(action::SetPin{*number, {}});
    tell("pin " + std::to_string(*number) + " let go");
  } else if (const auto free = pins.first_free()) {
    act_or_tell(action::SetPin{*free, place});
    const std::string name = std::to_string(*free);
    tell("pin " + name + " kept: " + name + " goes back to it");
  } else {
    tell("all 8 pins are kept: P on one of them lets it go");
  }
}

/// The picked token, or where none is the one whose row is shown.
void ViewerApp::walk_query(WalkAxis axis, int64_t by) {
  const ViewState& state = document_->history.now();
  const MapSource& call = document_->call_of(state.head);
  std::vector<int64_t> tokens;
  if (state.query) {
    tokens = state.query->tokens;
  } else if (frame_->followed()) {
    tokens = {*frame_->followed()};
  }
  const TokenGrid side = filmed(state.reverse ? call.keys : call.queries, state.segment);
  const ChosenQuery walked = walked_query(side, tokens, axis, by);
  const auto pan = pan_to(walked.tokens.front(), state.reverse);
  ViewState next = apply_action(state, action::PickQuery{walked}, document_->limits);
  if (pan) next = apply_action(next, *pan, document_->limits);
  document_->history.become(std::move(next));
  changed_ = true;
}

/// The move that brings a token's row, or a key's column, to the middle of the view; nothing where
/// it is within it.
std::optional<action::Pan> ViewerApp::pan_to(int64_t token, bool key) const {
  const ViewState& state = document_->history.now();
  const PlacedMap placed = document_->placed(state);
  const auto place = static_cast<double>((key ? placed.keys : placed.rows)->place(token));
  const double begin = key ? state.rect.k0 : state.rect.q0;
  const double end = key ? state.rect.k1 : state.rect.q1;
  if (place >= begin && place + 1 <= end) return std::nullopt;
  const double by = place + 0.5 - (begin + end) / 2;
  return action::Pan{key ? 0 : by, key ? by : 0};
}

void ViewerApp::walk_entry(bool larger) {
  if (!frame_) throw usage_error("no capture is open");
  const MapPoint point = frame_->walk(larger);
  for (const bool key : {false, true}) {
    if (const auto pan = pan_to(key ? point.key : point.query, key)) act(*pan);
  }
  window_->request_frames();
}

/// True of commands that walk by one.
bool ViewerApp::walk(CommandId command) {
  try {
    switch (command) {
      case CommandId::query_left:
        walk_query(WalkAxis::x, -1);
        return true;
      case CommandId::query_right:
        walk_query(WalkAxis::x, 1);
        return true;
      case CommandId::query_up:
        walk_query(WalkAxis::y, -1);
        return true;
      case CommandId::query_down:
        walk_query(WalkAxis::y, 1);
        return true;
      case CommandId::query_earlier:
        walk_query(WalkAxis::t, -1);
        return true;
      case CommandId::query_later:
        walk_query(WalkAxis::t, 1);
        return true;
      case CommandId::smaller_entry:
      case CommandId::larger_entry:
        walk_entry(command == CommandId::larger_entry);
        return true;
      default:
        return false;
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;
    tell(e.what());
    return true;
  }
}

/// True of commands of the window and its files.
bool ViewerApp::run_window_command(CommandId command) {
  switch (command) {
    case CommandId::help:
      dialogs_.show_help(!dialogs_.shows_help());
      return true;
    case CommandId::open_other:
      if (!document_) return true;
      [[fallthrough]];
    case CommandId::open:
      dialogs_.browse(document_ && document_->remote == nullptr && !document_->origin.path.empty()
                          ? std::filesystem::absolute(document_->origin.path).parent_path()
                          : std::filesystem::current_path(),
                      command == CommandId::open_other);
      return true;
    case CommandId::save_session:
      write_session_or_fail();
      return true;
    case CommandId::picture:
      write_first_free("attnscope", ".png", "The picture cannot be written",
                       [this](const std::filesystem::path& file) {
                         write_picture(picture(), file, false, guarded());
                         tell("picture saved: " + told_path(file));
                       });
      return true;
    case CommandId::figure:
      write_first_free("attnscope-map", ".pdf", "The page cannot be written",
                       [this](const std::filesystem::path& file) { save_figure(file); });
      return true;
    case CommandId::palette:
      dialogs_.palette().open();
      return true;
    case CommandId::messages:
      dialogs_.notices().show_kept();
      window_->request_frames();
      return true;
    case CommandId::export_view:
    case CommandId::copy_entry:
    case CommandId::copy_view:
    case CommandId::copy_heads:
    case CommandId::copy_stats:
      copy(command);
      return true;
    case CommandId::save_heads:
      write_first_free("attnscope-heads", ".json", "The list of heads cannot be written",
                       [this](const std::filesystem::path& file) { save_heads(file); });
      return true;
    default:
      return false;
  }
}

void ViewerApp::run_command(CommandId command) {
  if (run_window_command(command) || !document_ || walk(command)) return;
  if (command == CommandId::play) {
    toggle_film();
  } else if (command == CommandId::pin) {
    toggle_pin();
  } else if (command == CommandId::play_steps) {
    play(!playing());
  } else if (command == CommandId::back) {
    document_->history.undo();
  } else if (command == CommandId::forward) {
    document_->history.redo();
  } else if (command == CommandId::pick_query) {
    if (document_->history.now().query) {
      act(action::DropQuery{});
    } else if (frame_->followed()) {
      act(action::PickQuery{{{*frame_->followed()}}});
    }
  } else if (command == CommandId::hold_other || command == CommandId::difference) {
    if (!document_->history.now().other) {
      tell(
          "there is no side B: choose one with B in the toolbar, or right-click a head of the "
          "atlas");
    } else if (command == CommandId::hold_other) {
      show_other(true);
    } else {
      act_or_tell(action::SetDifference{next_difference(document_->history.now())});
    }
  } else if (const auto action =
                 command_action(command, document_->history.now(), document_->picker)) {
    act_or_tell(*action);
  }
}

/// A slip of a hand ends nothing.
void ViewerApp::act_or_tell(const Action& action) {
  try {
    act(action);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) throw;
    tell(e.what());
  }
}

bool ViewerApp::type(const std::string& text) {
  if (!dialogs_.palette().is_open()) return false;
  dialogs_.palette().type(text);
  window_->request_frames();
  return true;
}

std::string ViewerApp::clipboard() const {
  const char* const text = ImGui::GetClipboardText();
  return text == nullptr ? "" : text;
}

PaletteContext ViewerApp::palette_context() const {
  if (!document_) return {};
  const ViewState& state = document_->history.now();
  return {&document_->picker, state.head,
          TokenNames::of(document_->call_of(state.head), state.head.batch, state.reverse)};
}

void ViewerApp::copy(CommandId what) {
  if (!document_) return;
  try {
    const Session session = document_->session(window_->width(), window_->height());
    const std::string text = copied_text(what, *document_, *frame_, session);
    ImGui::SetClipboardText(text.c_str());
    tell("copied: " + text);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::usage) return fail("Nothing was copied", e.what());
    tell(std::string("nothing was copied: ") + e.what());
  }
}

}  // namespace attnscope
