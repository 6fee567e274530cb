#include "viewer/app/viewer_app.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "viewer/script/place_words.h"
#include "viewer/session/view_link.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

KeyChord command_chord(CommandId id) { return parse_chord(command_of(id).chords.front()); }

}  // namespace

void ViewerApp::open_other(const std::filesystem::path& path) {
  if (!document_) throw usage_error("no capture is open");
  auto document = Document::open(
      document_->origin, settings_.read_control, settings_.make_source,
      [window = window_] { window->wake(); }, path);
  // Heads of an earlier second capture are none of this one.
  ViewState now = document_->history.now();
  now = apply_action(now, action::DropOther{}, document_->limits);
  // Of a capture that has grown, calls may stand in another order.
  const HeadId head = document->picker.find(document_->picker.values(now.head));
  const CallLimits& before = document_->limits.of_call(now.head);
  now.head = head;
  if (!(document->limits.of_call(head) == before)) now = opened_view(document->limits);
  document->history.restart(std::move(now));
  document->take_nearest_other();
  show(std::move(document));
}

void ViewerApp::release(const KeyChord& chord) {
  // With or without the keys that were held beside it.
  if (chord.key == command_chord(CommandId::hold_other).key) show_other(false);
  if (chord.key == command_chord(CommandId::magnify).key) magnify(false);
}

void ViewerApp::hold(bool Document::*what, bool on) {
  if (!document_ || (*document_).*what == on) return;
  (*document_).*what = on;
  changed_ = true;
  window_->request_frames();
}

// Where one is, as the toolbar's field has it.

SettingPlace ViewerApp::setting_place() const {
  return {.state = document_->history.now(),
          .picker = &document_->picker,
          .others = &document_->other_picker,
          .moments = film_moments()};
}

/// Of a command that was pasted, its place in what is open.
ViewState ViewerApp::state_of_command(const ToldPlace& told) const {
  const auto check = [](const std::string& named, const CaptureOrigin& open) {
    const std::string name = CaptureOrigin{named, {}, {}}.name().filename().string();
    if (named.empty() || name == open.name().filename().string()) return;
    throw usage_error("the command is of " + one_line(name) +
                      (open.name().empty()
                           ? ", which is not open"
                           : ", and " + one_line(open.name().filename().string()) + " is open"));
  };
  check(told.input, document_->origin);
  check(told.second, document_->other_origin);
  return state_after(told.lines, setting_place(), document_->limits);
}

/// Of an entry that was copied: its head, its token picked, and the entry in the middle.
ViewState ViewerApp::state_of_entry(const ToldEntry& told) const {
  constexpr std::string_view kOther = "B: ";
  const bool other = told.head.starts_with(kOther);
  const std::string title = told.head.substr(other ? kOther.size() : 0);
  const auto head = (other ? document_->other_picker : document_->picker).titled(title);
  if (!head) throw usage_error(one_line(title) + ": no head of what is open");
  const ViewState& now = document_->history.now();
  ViewState state = other ? apply_action(now, action::SetOther{*head}, document_->limits)
                          : apply_action(now, action::SelectHead{*head}, document_->limits);
  const MapSource& call = document_->call_of(state.head);
  if (told.query >= call.queries.tokens() || told.key >= call.keys.tokens()) {
    throw usage_error(fmt::format("row {}, column {}: the map has {} rows and {} columns",
                                  told.query, told.key, call.queries.tokens(), call.keys.tokens()));
  }
  const PlacedMap placed = document_->placed(state);
  const MapRect& rect = state.rect;
  const auto from_middle = [](int64_t place, double begin, double end) {
    return static_cast<double>(place) + 0.5 - (begin + end) / 2;
  };
  const action::Pan pan{from_middle(placed.rows->place(told.query), rect.q0, rect.q1),
                        from_middle(placed.keys->place(told.key), rect.k0, rect.k1)};
  state = apply_action(state, pan, document_->limits);
  const action::PickQuery pick{{{state.reverse ? told.key : told.query}}};
  return apply_action(state, pick, document_->limits);
}

/// The state at a place that was typed or pasted.
ViewState ViewerApp::state_of_text(const std::string& text) const {
  const SettingPlace here = setting_place();
  const MapSource& call = here.call();
  if (const auto command =
          read_view_command(text, fit_rect(call.queries.tokens(), call.keys.tokens()))) {
    return state_of_command(*command);
  }
  if (const auto entry = read_entry_text(text)) return state_of_entry(*entry);
  return state_at(text, here, palette_context(), document_->limits);
}

/// All of it, as one step of undo, or nothing.
void ViewerApp::go_to_place(const std::string& text) {
  place_problem_.clear();
  window_->request_frames();
  // Parts of the map are told to whole entries: what was not changed stays as it is.
  if (text == place_text(setting_place())) return;
  try {
    document_->history.become(state_of_text(text));
    changed_ = true;
  } catch (const Error& error) {
    place_problem_ = one_line(error.what());
  }
}

}  // namespace attnscope
