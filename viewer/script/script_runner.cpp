#include "viewer/script/script_runner.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/nearest_word.h"
#include "core/problem/key_segments.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "viewer/commands/commands.h"
#include "viewer/script/script_values.h"
#include "viewer/view/comparison.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/pin_places.h"
#include "viewer/view/query_words.h"
#include "viewer/view/row/prompt_words.h"
#include "viewer/view/row/words_view.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// The way on after a command: the next at once, the next after a frame, or this again after one.
enum class After : uint8_t { take_up, frame, again };

bool compares(double left, CompareOp op, double right) {
  switch (op) {
    case CompareOp::equal:
      return left == right;
    case CompareOp::unequal:
      return left != right;
    case CompareOp::less:
      return left < right;
    case CompareOp::less_equal:
      return left <= right;
    case CompareOp::greater:
      return left > right;
    case CompareOp::greater_equal:
      return left >= right;
  }
  return false;
}

/// The JSON that `probe` prints. JSON has no −inf and no NaN: null stands for a masked entry's
/// logit, and for numbers that an export does not have.
OrderedJson probed_json(const ProbedEntry& entry) {
  const auto number = [](double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
  };
  const bool of_block = entry.block > 1;
  const bool known = !std::isnan(entry.weight) || !std::isnan(entry.logit);
  OrderedJson json;
  json["q"] = entry.query;
  json["k"] = entry.key;
  json["weight"] = of_block ? OrderedJson() : number(entry.weight);
  json["logit"] = number(entry.logit);
  json["exact"] = known && !of_block && !entry.rounded;
  if (of_block) {
    json["block"] = entry.block;
    json["block_max"] = number(entry.weight);
    json["block_mean"] = number(entry.mean);
  }
  return json;
}

/// A number as JSON, which has no infinities and no NaN: null.
OrderedJson number_json(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}

/// The numbers of the entry's row, key and pair of frames; null: the head has no such number.
OrderedJson tracks_json(const HeadTracks& tracks, const MapSource& call, const ProbedEntry& entry) {
  const int64_t query = entry.query, key = entry.key;
  const auto at = [](const std::vector<double>& values, int64_t token) {
    if (values.empty()) return OrderedJson();
    return number_json(values[static_cast<size_t>(token)]);
  };
  OrderedJson json{
      {"entropy", at(tracks.entropy, query)},
      {"lse", at(tracks.lse, query)},
      {"text_mass", at(tracks.text_mass, query)},
      {"column_mass", at(tracks.column_mass, key)},
      {"frame_mass", at(tracks.group_mass, group_at(call.queries, query) * tracks.key_groups +
                                               group_at(call.keys, key))}};
  const auto from = call.queries.coord(query), to = call.keys.coord(key);
  if (!from || !to || tracks.by_dt.empty()) return json;
  json["by_dt"] = at(tracks.by_dt, to->t - from->t + call.keys.frames() - 1);
  json["by_dy"] = at(tracks.by_dy, to->y - from->y + call.keys.height() - 1);
  json["by_dx"] = at(tracks.by_dx, to->x - from->x + call.keys.width() - 1);
  const auto expected = tracks.mean_at_dt(call.queries, query, call.keys, key);
  json["over_dt"] = number_json(entry.weight / expected.value_or(0));
  return json;
}

/// Adds side B's numbers, and A's against them, to the JSON that `probe` prints.
void add_other(const ProbedEntry& a, const ProbedEntry& b, OrderedJson& json) {
  const bool entries = a.block == 1 && b.block == 1;
  const double none = std::numeric_limits<double>::quiet_NaN();
  json["b"] = {{"weight", number_json(b.block == 1 ? b.weight : none)},
               {"logit", number_json(b.logit)}};
  const double weight = entries ? a.weight - b.weight : none;
  const bool ratio = entries && a.weight > 0 && b.weight > 0;
  json["difference"] = {{"weight", number_json(weight)},
                        {"logit", number_json(a.logit - b.logit)},
                        {"log2_ratio", number_json(ratio ? std::log2(a.weight / b.weight) : none)}};
}

/// Labels that hold the wanted one or its last part, or differ by little; at most eight.
std::string near_labels(const std::string& label, const std::vector<std::string>& labels) {
  constexpr size_t kListed = 8;
  const std::string nearest = nearest_word(label, labels);
  const std::string last = label.substr(label.rfind('/') + 1);
  std::vector<std::string> listed;
  if (!nearest.empty()) listed.push_back(nearest);
  for (const std::string& each : labels) {
    if (listed.size() == kListed) break;
    const bool shares = each.find(label) != std::string::npos ||
                        (last.size() > 1 && each.find(last) != std::string::npos);
    if (shares && each != nearest) listed.push_back(each);
  }
  const bool near = !listed.empty();
  for (size_t i = 0; !near && i < std::min(labels.size(), kListed); ++i) {
    listed.push_back(labels[i]);
  }
  if (listed.empty()) return "the window has no labels";
  std::string text = near ? "near it: " : "the window has ";
  for (size_t i = 0; i < listed.size(); ++i) {
    text += (i == 0 ? "\"" : ", \"") + one_line(listed[i]) + "\"";
  }
  return text + (near || labels.size() <= kListed ? "" : " ...");
}

}  // namespace

/// One command run for one frame.
struct ScriptRunner::Step {
  ScriptRunner& runner;
  ScriptHost& host;
  double seconds;  ///< since the command began

  const std::vector<MapSource>& calls() const {
    if (host.calls() == nullptr) throw usage_error("no capture is open");
    return *host.calls();
  }
  TokenNames names() const {
    const HeadId& head = host.state().head;
    return TokenNames::of(calls()[static_cast<size_t>(head.call)], head.batch,
                          host.state().reverse);
  }
  After act(const Action& action) const {
    calls();
    host.act(action);
    return After::frame;
  }
  After operator()(const word::Open& w) const {
    host.open(w.path);
    return After::frame;
  }
  After operator()(const word::Size& w) const {
    host.resize(w.width, w.height);
    return After::frame;
  }
  After operator()(const word::Select& w) const {
    calls();
    const HeadPicker picker = host.picker();
    return act(action::SelectHead{picker.select(host.state().head, w.axis, w.value)});
  }
  After operator()(const word::SelectLayerHead& w) const {
    calls();
    const HeadPicker picker = host.picker();
    const HeadId layer = picker.select(host.state().head, HeadAxis::layer, w.layer);
    return act(action::SelectHead{picker.select(layer, HeadAxis::head, w.head)});
  }
  After operator()(const word::QueryAt& w) const {
    return act(action::PickQuery{query_at(names(), w.place)});
  }
  After operator()(const word::QueryBox& w) const {
    return act(action::PickQuery{query_box(names(), w.box, "query")});
  }
  After operator()(const word::QueryText& w) const {
    return act(action::PickQuery{query_text(names(), w.number)});
  }
  After operator()(const word::QueryToken& w) const {
    return act(action::PickQuery{ChosenQuery{{w.token}}});
  }
  After operator()(const word::ShowSegment& w) const {
    const MapSource& call = calls()[static_cast<size_t>(host.state().head.call)];
    check_film_segment(host.state().reverse ? call.queries : call.keys, w.name);
    return act(action::SetSegment{w.name});
  }
  After operator()(const word::ShowAtlas& w) const {
    AtlasLook look = host.state().atlas;
    look.shown = w.part != "off";
    if (w.part == "cells") look.metric = w.value;
    if (w.part == "sort") look.sort = w.value;
    if (w.part == "filter") look.filter = w.value;
    if (w.part == "exact" || w.part == "sampled") look.exact = w.part == "exact";
    return act(action::SetAtlas{look});
  }
  After operator()(const word::ShowVolume& w) const {
    if (w.change.slice && *w.change.slice) {
      const MapSource& call = calls()[static_cast<size_t>(host.state().head.call)];
      const TokenGrid& side = film_of_columns(host.state()) ? call.queries : call.keys;
      check_volume_slice(filmed(side, host.state().segment), **w.change.slice);
    }
    return act(action::SetVolume{w.change.of(host.state().volume)});
  }
  After operator()(const word::ShowTimeline& w) const {
    return act(action::SetTimeline{w.change.of(host.state().timeline)});
  }
  After operator()(const word::ShowTrack& w) const {
    TracksLook look = host.state().tracks;
    if (w.rows) look.rows = *w.rows;
    if (w.keys) look.keys = *w.keys;
    return act(action::SetTracks{look});
  }
  After operator()(const word::GoToPin& w) const {
    const MapSource& call = calls()[static_cast<size_t>(host.state().head.call)];
    return act(go_to_pin(host.state(), call, w.number));
  }
  After operator()(const word::Play& w) const {
    calls();
    host.play(w.on);
    return After::frame;
  }
  After operator()(const word::ShowWords& w) const {
    WordsLook look = host.state().words;
    look.shown = w.part != "off";
    if (w.part == "special") look.special = w.value == "on";
    if (w.part == "sort") look.by_mass = w.value == "mass";
    if (w.part == "filter") look.filter = w.value;
    return act(action::SetWords{look});
  }
  After operator()(const word::ChooseWords& w) const {
    const HeadId& head = host.state().head;
    const MapSource& call = calls()[static_cast<size_t>(head.call)];
    WordsLook look = host.state().words;
    look.chosen.clear();
    if (!w.text.empty()) {
      const bool keys = !call.keys.text_range().empty();
      look.chosen = chosen_words(TokenNames::of(call, head.batch, keys), w.text);
    }
    return act(action::SetWords{look});
  }
  After operator()(const word::Film& w) const {
    if (w.part == "save") return save_film(w.path);
    calls();
    if (w.part == "play" || w.part == "stop") {
      host.play_film(w.part == "play");
      return After::frame;
    }
    FilmLook look = host.state().film;
    if (const auto mode = parse_film_mode(w.part)) look.mode = *mode;
    if (const auto time = parse_film_time(w.part)) look.time = *time;
    if (w.part == "none") look.over = false;
    if (parse_film_mode(w.part)) look.over = true;
    if (w.part == "opacity") look.opacity = static_cast<float>(w.number);
    if (w.part == "all" || w.part == "one") look.one = w.part == "one";
    if (w.part == "loop") look.loop = w.number > 0;
    if (w.part == "rate") look.rate = static_cast<int>(w.number);
    if (w.part == "frame") look.moment = checked_moment(static_cast<int64_t>(w.number));
    return act(action::SetFilm{look});
  }
  After operator()(const word::ShowMask& w) const {
    calls();
    MaskLook look = host.state().mask;
    look.shown = w.part != "off";
    if (w.part == "off") look = {};
    if (w.part == "set") {
      look.text = w.text;
      look.block = w.block;
      look.edits.clear();
    }
    if (w.part == "edit") {
      if (look.text.empty()) look.text = "none";
      look.edits.push_back(w.edit);
    }
    if (w.part == "unedited") look.edits.clear();
    if (w.part == "brush") look.brush = w.brush;
    if (w.part == "lost") look.lost = w.lost;
    return act(action::SetMask{look});
  }
  int64_t checked_moment(int64_t moment) const {
    const auto count = host.measured(ScriptName::film_frames);
    if (!count || static_cast<double>(moment) < *count) return moment;
    throw usage_error(
        fmt::format("film frame {}: outside the film (valid 0 to {:.0f})", moment, *count - 1));
  }
  After save_film(const std::string& path) const {
    calls();
    if (!runner.begun_) {
      // Not of a line, or a film, that is on its way out.
      const std::string problem = host.problem_before(WaitFor::query);
      if (!problem.empty()) throw usage_error("film: " + one_line(problem));
      if (!host.reached(WaitFor::query)) return again_within(kWaitSeconds, "film " + path);
      host.save_film(path);
      runner.begun_ = true;
      return After::again;
    }
    return host.film_saved() ? After::frame : After::again;
  }
  After operator()(const word::ShowOrder& w) const {
    calls();
    const bool named = TokenOrder::is_name(w.text);
    return act(
        action::SetOrder{named ? TokenOrder::parse(w.text) : host.read_order(w.text), w.side});
  }
  After operator()(const word::Act& w) const { return act(w.action); }

  After operator()(const word::Click& w) const {
    return use_mouse(w.press ? "click" : "hover", w.label,
                     [&] { return w.press ? host.click(w.label) : host.hover(w.label); });
  }
  After operator()(const word::Drag& w) const {
    return use_mouse("drag", w.label, [&] { return host.drag(w); });
  }
  After operator()(const word::Wheel& w) const {
    return use_mouse("wheel", w.label, [&] { return host.wheel(w); });
  }
  /// Waits for the label, then until the mouse has done what `begin` began.
  After use_mouse(const char* what, const std::string& label,
                  const std::function<bool()>& begin) const {
    if (runner.begun_) return host.input_done() ? After::frame : After::again;
    if (begin()) {
      runner.begun_ = true;
      return After::again;
    }
    if (runner.frames_ < kLabelFrames) return After::again;
    throw usage_error(fmt::format("{} \"{}\": no such label; {}", what, one_line(label),
                                  near_labels(label, host.labels())));
  }
  After operator()(const word::Type& w) const {
    if (runner.begun_) return host.input_done() ? After::frame : After::again;
    if (!host.type(w.text)) throw usage_error("type: no field takes text now (Ctrl+P opens one)");
    runner.begun_ = true;
    return After::again;
  }
  After operator()(const word::PressKey& w) const {
    const auto command = command_on(w.chord);
    if (command && !command_of(*command).here) {
      throw usage_error(fmt::format("key {}: {}: not in this window yet", chord_text(w.chord),
                                    command_of(*command).name));
    }
    if (!runner.begun_) {
      host.press(w.chord);
      runner.begun_ = true;
      return After::again;
    }
    return host.input_done() ? After::frame : After::again;
  }
  After operator()(const word::SelectOther& w) const {
    calls();
    const HeadPicker picker = host.other_picker();
    HeadId head = first_other(host.state(), host.picker(), picker);
    for (const auto& [axis, value] : w.values) head = picker.select(head, axis, value);
    return act(action::SetOther{head});
  }
  After operator()(const word::OpenOther& w) const {
    calls();
    host.open_other(w.path);
    return After::frame;
  }
  After operator()(const word::ShowOther& w) const {
    calls();
    if (w.on && !host.state().other) throw usage_error("b show: there is no side B");
    host.show_other(w.on);
    return After::frame;
  }
  /// For what comes by itself: throws when that takes longer than `limit` seconds.
  After again_within(double limit, const std::string& what) const {
    if (seconds < limit) return After::again;
    const std::string reason = host.waiting_for();
    throw usage_error(fmt::format("{}: not there after {:g} s{}", what, limit,
                                  reason.empty() ? "" : " (" + one_line(reason) + ")"));
  }
  After operator()(const word::Wait& w) const {
    calls();
    if (host.reached(w.what)) return After::take_up;
    const std::string problem = host.problem_before(w.what);
    if (!problem.empty()) {
      throw usage_error(fmt::format("wait {}: {}", wait_name(w.what), one_line(problem)));
    }
    return again_within(w.seconds, "wait " + std::string(wait_name(w.what)));
  }
  After operator()(const word::WaitCalls& w) const {
    const int64_t calls = host.calls() ? static_cast<int64_t>(host.calls()->size()) : 0;
    const int64_t there = w.pictures ? host.pictures() : calls;
    if (there >= w.count) return After::take_up;
    const std::string what = fmt::format("wait {} {}", w.pictures ? "pictures" : "calls", w.count);
    if (!host.follows()) {
      throw usage_error(
          fmt::format("{}: there are {}, and nothing is followed (--follow)", what, there));
    }
    return again_within(w.seconds, what);
  }
  After operator()(const word::Probe& w) const {
    const MapSource& call = calls()[static_cast<size_t>(host.state().head.call)];
    if (w.query >= call.queries.tokens() || w.key >= call.keys.tokens()) {
      throw usage_error(fmt::format("probe {} {}: outside the map (queries 0 to {}, keys 0 to {})",
                                    w.query, w.key, call.queries.tokens() - 1,
                                    call.keys.tokens() - 1));
    }
    const std::optional<ProbedEntry> probed = host.probe(w.query, w.key);
    if (!probed) return again_within(kWaitSeconds, fmt::format("probe {} {}", w.query, w.key));
    const auto tracks = host.tracks();
    if (host.wants_tracks() && (!tracks || !tracks->exact)) {
      const std::string problem = host.problem_before(WaitFor::exact);
      if (!problem.empty()) throw usage_error("probe: " + one_line(problem));
      return again_within(kWaitSeconds, "the tracks");
    }
    OrderedJson json = probed_json(*probed);
    if (host.wants_tracks()) json["tracks"] = tracks_json(*tracks, call, *probed);
    if (call.is_evicted(w.query, w.key)) json["evicted"] = true;
    if (host.state().other) {
      const std::optional<ProbedEntry> other = host.probe_other(w.query, w.key);
      if (!other) return again_within(kWaitSeconds, fmt::format("probe {} {}", w.query, w.key));
      add_other(*probed, *other, json);
    }
    host.print(json_text(json));
    return After::take_up;
  }
  After operator()(const word::Print& w) const {
    host.print(
        fmt::format("{} {}", script_name_text(w.name), one_line(script_value(w.name, host))));
    return After::take_up;
  }
  After operator()(const word::Expect& w) const {
    const std::string got = script_value(w.name, host);
    bool good = false;
    if (is_number(w.name)) {
      // Measured numbers are compared as they are, not as they are printed.
      const std::optional<double> measured = host.measured(w.name);
      good = compares(measured ? *measured : std::stod(got), w.op, w.number);
    } else {
      good = (got == w.text) == (w.op == CompareOp::equal);
    }
    if (!good) {
      throw usage_error(fmt::format("expect {} {} {}: got {}", script_name_text(w.name),
                                    compare_op_text(w.op), one_line(w.text), one_line(got)));
    }
    return After::take_up;
  }
  After operator()(const word::Shot& w) const {
    if (!runner.begun_) {
      host.shot(w.path);
      runner.begun_ = true;
    }
    return host.shot_done() ? After::take_up : After::again;
  }
  After operator()(const word::SaveSession& w) const {
    calls();
    host.save_session(w.path);
    return After::take_up;
  }
  After operator()(const word::SaveMask& w) const {
    calls();
    const std::string problem = host.problem_before(WaitFor::mask);
    if (!problem.empty()) throw usage_error("save-mask: " + one_line(problem));
    if (!host.reached(WaitFor::mask)) return again_within(kWaitSeconds, "save-mask " + w.path);
    host.save_mask(w.path);
    return After::take_up;
  }
  After operator()(const word::Quit&) const {
    runner.quit_ = true;
    return After::take_up;
  }
};

ScriptRunner::ScriptRunner(Script script, ScriptHost& host)
    : script_(std::move(script)), host_(host) {}

ScriptRunner::State ScriptRunner::step(double seconds) {
  while (state_ == State::running) {
    if (quit_ || next_ == script_.lines.size()) {
      state_ = State::finished;
      break;
    }
    const ScriptLine& line = script_.lines[next_];
    if (!started_) {
      since_ = seconds;
      frames_ = 0;
      begun_ = false;
    }
    try {
      const After after = std::visit(Step{*this, host_, seconds - since_}, line.word);
      started_ = after == After::again;
      ++frames_;
      if (after != After::again) ++next_;
      if (after != After::take_up) break;
    } catch (const Error& error) {
      error_ = fmt::format("{}:{}: {}", script_.file, line.line, error.what());
      state_ = State::failed;
    }
  }
  return state_;
}

}  // namespace attnscope
