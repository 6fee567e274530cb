#include "viewer/script/view_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "viewer/settings/settings.h"
#include "viewer/view/query_words.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

using Choices = std::vector<std::pair<HeadAxis, std::string>>;

/// The values of a head in the order in which HeadPicker::select() keeps them best. `all`: also
/// those that the capture has one of.
Choices choices_of(const HeadPicker& picker, const HeadId& head, bool all) {
  const HeadValues v = picker.values(head);
  const Unrecorded& unrecorded = v.place.unrecorded;
  Choices choices;
  const auto add = [&](HeadAxis axis, const std::string& value, bool usual) {
    const size_t count = picker.choices(head, axis).size();
    if (count > 1 || (count == 1 && (usual || all))) choices.emplace_back(axis, value);
  };
  if (!v.place.slot.empty()) add(HeadAxis::slot, v.place.slot, false);
  if (v.place.slot.empty() || all) {
    add(HeadAxis::kind, std::string(kind_name(v.kind)), false);
  }
  if (!unrecorded.branch) add(HeadAxis::branch, v.branch, false);
  const bool in_stack = v.layer != kNoLayer;
  if (in_stack && !unrecorded.layer) add(HeadAxis::layer, std::to_string(v.layer), true);
  if (!v.place.block.empty() && (!in_stack || all)) add(HeadAxis::block, v.place.block, true);
  if (!unrecorded.step) add(HeadAxis::step, std::to_string(v.step), true);
  if (v.place.has_chunk()) add(HeadAxis::chunk, std::to_string(v.place.chunk), false);
  add(HeadAxis::batch, std::to_string(v.batch), false);
  add(HeadAxis::head, std::to_string(v.head), true);
  return choices;
}

/// Where these choices lead from the first head.
HeadId chosen_head(const HeadPicker& picker, const Choices& choices) {
  HeadId head;
  for (const auto& [axis, value] : choices) head = picker.select(head, axis, value);
  return head;
}

Choices head_choices(const HeadPicker& picker, const HeadId& head) {
  const auto leads_there = [&](const Choices& choices) {
    const HeadId there = chosen_head(picker, choices);
    return there.call == head.call && there.batch == head.batch && there.head == head.head;
  };
  Choices choices = choices_of(picker, head, false);
  if (leads_there(choices)) return choices;
  choices = choices_of(picker, head, true);
  if (leads_there(choices)) return choices;
  // Values that were not together with those before them are, once all the others stand.
  const Choices again = choices;
  choices.insert(choices.end(), again.begin(), again.end());
  return choices;
}

/// The parts one after the other, without the longest ones where all of them would be too long.
std::string joined_within(std::vector<std::string> parts, size_t most) {
  const auto size = [](size_t sum, const std::string& part) { return sum + part.size(); };
  const auto shorter = [](const std::string& a, const std::string& b) {
    return a.size() < b.size();
  };
  while (std::accumulate(parts.begin(), parts.end(), size_t{0}, size) > most) {
    parts.erase(std::max_element(parts.begin(), parts.end(), shorter));
  }
  return std::accumulate(parts.begin(), parts.end(), std::string());
}

/// Settings that an address writes; its head has lines of its own.
bool is_written(const Setting& setting) {
  return setting.in_address && setting.name != head_axis_name(HeadAxis::step);
}

/// True where the check throws nothing.
template <typename Check>
bool passes(const Check& check) {
  try {
    check();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The view without that which an address cannot have: what other heads had, and the ranked rows of
/// a side B.
ViewState addressed(ViewState view, const HeadPicker& picker) {
  if (view.maximised == ViewPane::ranked) view.maximised.reset();
  const MapSource& call = picker.calls()[static_cast<size_t>(view.head.call)];
  // Words are chosen after a plane: until then the film is the query's.
  const TokenGrid& side = view.reverse ? call.queries : call.keys;
  if (!passes([&] { check_film_segment(side, view.segment); })) view.segment.clear();
  const TokenGrid film = filmed(side, view.segment);
  if (view.volume.slice && !passes([&] { check_volume_slice(film, *view.volume.slice); })) {
    view.volume.slice.reset();
  }
  return view;
}

}  // namespace

bool only_looks(const ScriptLine& line) {
  const auto* const set = std::get_if<word::Set>(&line.word);
  if (set == nullptr) return false;
  const std::vector<std::string> words = script_line_words(line.text);
  if (set->setting == nullptr) return words[0] == "fit" || words[0] == "unpin";
  // An order may be a file's.
  return set->setting->in_address && (words[0] != "order" || TokenOrder::is_name(words[1]));
}

std::string view_script(const ViewState& shown, const HeadPicker& picker) {
  const ViewState view = addressed(shown, picker);
  const ViewLimits limits = ViewLimits::of(picker.calls());
  std::vector<std::string> parts;
  for (const auto& [axis, value] : head_choices(picker, view.head)) {
    parts.push_back(fmt::format("{} {}\n", head_axis_name(axis), script_quoted(value)));
  }
  ViewState now = apply_action(opened_view(limits), action::SelectHead{view.head}, limits);
  // Windows begin with all heads and the words or without them, so this is always said.
  now.atlas.shown = !view.atlas.shown;
  now.words.shown = !view.words.shown;
  const SettingPlace place{.state = view, .picker = &picker, .others = &picker, .rounded = true};
  for (std::string& line : setting_lines(place, limits, is_written, now)) {
    parts.push_back(std::move(line));
  }
  return joined_within(std::move(parts), kMostViewScript);
}

Script parse_view_script(std::string_view text) {
  if (text.size() > kMostViewScript) {
    throw usage_error(fmt::format("address: a view of at most {} bytes was expected, got {}",
                                  kMostViewScript, text.size()));
  }
  Script script = parse_script(text, "address");
  for (const ScriptLine& line : script.lines) {
    if (only_looks(line)) continue;
    throw usage_error(
        fmt::format("address:{}: {}: an address has words that change what is looked at, and no "
                    "others",
                    line.line, one_line(line.text)));
  }
  return script;
}

}  // namespace attnscope
