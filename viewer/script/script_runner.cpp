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
#include "viewer/view/maps/map_source.h"

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
  After operator()(const word::Open& w) const {
    host.open(w.path);
    return After::frame;
  }
  After operator()(const word::Size& w) const {
    host.resize(w.width, w.height);
    return After::frame;
  }
  After operator()(const word::Set& w) const {
    calls();
    host.act(w.change(host.place()));
    return After::frame;
  }
  After operator()(const word::Play& w) const {
    calls();
    host.play(w.on);
    return After::frame;
  }
  After operator()(const word::PlayFilm& w) const {
    calls();
    host.play_film(w.on);
    return After::frame;
  }
  After operator()(const word::SaveFilm& w) const {
    calls();
    if (!runner.begun_) {
      // Not of a line, or a film, that is on its way out.
      const std::string problem = host.problem_before(WaitFor::query);
      if (!problem.empty()) throw usage_error("film: " + one_line(problem));
      if (!host.reached(WaitFor::query)) return again_within(kWaitSeconds, "film " + w.path);
      host.save_film(w.path);
      runner.begun_ = true;
      return After::again;
    }
    return host.film_saved() ? After::frame : After::again;
  }
  After operator()(const word::SaveFigure& w) const {
    calls();
    const std::string problem = host.problem_before(WaitFor::exact);
    if (!problem.empty()) throw usage_error("figure: " + one_line(problem));
    if (!host.reached(WaitFor::exact)) return again_within(kWaitSeconds, "figure " + w.path);
    host.save_figure(w.path);
    return After::take_up;
  }
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
    const int64_t there =
        w.pictures ? static_cast<int64_t>(host.measured().pictures.value_or(0)) : calls;
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
    host.print(fmt::format("{} {}", w.value->name,
                           one_line(value_text(*w.value, host.place(), host.measured()))));
    return After::take_up;
  }
  After operator()(const word::Expect& w) const {
    const SettingPlace place = host.place();
    const Measured measured = host.measured();
    const std::string got = value_text(*w.value, place, measured);
    const bool good = w.value->number
                          ? compares(value_number(*w.value, place, measured), w.op, w.number)
                          : (got == w.text) == (w.op == CompareOp::equal);
    if (!good) {
      throw usage_error(fmt::format("expect {} {} {}: got {}", w.value->name, compare_op_text(w.op),
                                    one_line(w.text), one_line(got)));
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
  After operator()(const word::SaveHeads& w) const {
    calls();
    host.save_heads(w.path);
    return After::take_up;
  }
  After operator()(const word::WalkEntry& w) const {
    calls();
    const std::string problem = host.problem_before(WaitFor::query);
    if (!problem.empty()) throw usage_error("walk: " + one_line(problem));
    if (!host.reached(WaitFor::query)) return again_within(kWaitSeconds, "walk");
    host.walk_entry(w.larger);
    return After::frame;
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
