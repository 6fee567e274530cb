#include "viewer/script/script_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "viewer/script/script_values.h"
#include "viewer/view/pin_places.h"
#include "viewer/view/query_walk.h"
#include "viewer/view/query_words.h"
#include "viewer/view/window_size.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

constexpr double kMostSeconds = 86400;

constexpr std::array<std::string_view, 6> kWaits{"picture", "query", "exact",
                                                 "atlas",   "idle",  "mask"};
constexpr std::array<std::string_view, 6> kOps{"==", "!=", "<", "<=", ">", ">="};

template <size_t kCount>
std::vector<std::string> list_of(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

template <typename Enum, size_t kCount>
Enum choose(std::string_view what, const std::array<std::string_view, kCount>& names,
            const std::string& name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  throw unknown_name(what, name, list_of(names));
}

ScriptWord make_open(const Words& w) { return word::Open{w[1]}; }
ScriptWord make_size(const Words& w) {
  const int64_t width = whole(w, 1), height = whole(w, 2);
  // As wide as the largest there is, so that no digit is lost before the check.
  const auto side = [](int64_t pixels) {
    return static_cast<int>(std::min<int64_t>(pixels, kLargestWindow.width + 1));
  };
  if (!is_window_size({side(width), side(height)})) {
    throw usage_error(
        fmt::format("size {} {}: expected {} pixels", width, height, window_size_limits()));
  }
  return word::Size{side(width), side(height)};
}

/// `pin N`, where no more is said; pins are settings.
ScriptWord make_go_to_pin(const Words& w) {
  return word::Set{[number = whole(w, 1)](const SettingPlace& at) -> Action {
    return go_to_pin(at.state, at.call(), number);
  }};
}
ScriptWord make_unpin(const Words& w) {
  return word::Set{[number = whole(w, 1)](const SettingPlace&) -> Action {
    return action::SetPin{number, {}};
  }};
}
ScriptWord make_fit(const Words&) {
  return word::Set{[](const SettingPlace&) -> Action { return action::Fit{}; }};
}
/// `walk x|y|t N`: of the picked token.
ScriptWord make_walk(const Words& w) {
  constexpr std::array<std::string_view, 3> kAxes{"x", "y", "t"};
  const auto axis = choose<WalkAxis>(w[0], kAxes, w[1]);
  return word::Set{[axis, by = whole(w, 2)](const SettingPlace& at) -> Action {
    if (!at.state.query) throw usage_error("walk: no token is picked");
    const MapSource& call = at.call();
    const TokenGrid side = filmed(at.state.reverse ? call.keys : call.queries, at.state.segment);
    return action::PickQuery{walked_query(side, at.state.query->tokens, axis, by)};
  }};
}
ScriptWord make_walk_entry(const Words& w) {
  constexpr std::array<std::string_view, 2> kWays{"smaller", "larger"};
  return word::WalkEntry{choose<bool>(w[0], kWays, w[1])};
}
ScriptWord make_play(const Words& w) { return word::Play{is_on(w, 1)}; }
ScriptWord make_play_film(const Words& w) { return word::PlayFilm{w[1] == "play"}; }
ScriptWord make_save_film(const Words& w) {
  constexpr std::array kEndings{".gif", ".mp4", ".png", ".svg", ".pdf", "/"};
  const auto ends = [&](const char* ending) { return w[1].ends_with(ending); };
  if (std::any_of(kEndings.begin(), kEndings.end(), ends)) return word::SaveFilm{w[1]};
  throw usage_error("film " + one_line(w[1]) +
                    ": expected FILE.gif, FILE.mp4, FILE.png, FILE.svg, FILE.pdf or FOLDER/");
}
ScriptWord make_save_figure(const Words& w) {
  constexpr std::array kEndings{".pdf", ".svg", ".png"};
  const auto ends = [&](const char* ending) { return w[1].ends_with(ending); };
  if (std::any_of(kEndings.begin(), kEndings.end(), ends)) return word::SaveFigure{w[1]};
  throw usage_error("figure " + one_line(w[1]) + ": expected FILE.pdf, FILE.svg or FILE.png");
}
ScriptWord make_open_other(const Words& w) { return word::OpenOther{w[2]}; }
ScriptWord make_show_other(const Words& w) { return word::ShowOther{is_on(w, 2)}; }

ScriptWord make_click(const Words& w) { return word::Click{w[1]}; }
ScriptWord make_hover(const Words& w) { return word::Click{w[1], false}; }
ScriptWord make_drag(const Words& w) {
  word::Drag drag{w[1], number(w, 2), number(w, 3), number(w, 4), number(w, 5)};
  for (const double share : {drag.x0, drag.y0, drag.x1, drag.y1}) {
    if (share < 0 || share > 1) {
      throw usage_error("drag: expected shares of the label's width and height, 0 to 1");
    }
  }
  for (const std::string& key : w.subspan(6)) {
    if (key != "shift" && key != "ctrl") throw unknown_name("drag", key, {"shift", "ctrl"});
    (key == "shift" ? drag.shift : drag.ctrl) = true;
  }
  return drag;
}
ScriptWord make_wheel(const Words& w) {
  const word::Wheel wheel{w[1], whole(w, 2)};
  constexpr int64_t kMost = 1000;
  if (wheel.notches == 0 || std::abs(wheel.notches) > kMost) {
    throw usage_error(fmt::format("wheel: expected notches from -{0} to {0}, not 0, got {1}", kMost,
                                  one_line(w[2])));
  }
  return wheel;
}
ScriptWord make_type(const Words& w) { return word::Type{joined(w, 1)}; }
ScriptWord make_key(const Words& w) { return word::PressKey{parse_chord(w[1])}; }

/// Of a wait, where word `at` says them.
double seconds_at(const Words& w, size_t at) {
  if (w.size() <= at) return kWaitSeconds;
  const double seconds = number(w, at);
  if (!(seconds > 0) || seconds > kMostSeconds) {
    throw usage_error(
        fmt::format("wait: expected seconds above 0 and at most {}, got {}", kMostSeconds, w[at]));
  }
  return seconds;
}

ScriptWord make_wait(const Words& w) {
  if (w[1] == "calls" || w[1] == "pictures") {
    const std::string what = "wait " + w[1] + ": expected ";
    if (w.size() == 2) throw usage_error(what + "how many " + w[1]);
    const word::WaitCalls wait{whole(w, 2), w[1] == "pictures", seconds_at(w, 3)};
    if (wait.count < 1) throw usage_error(what + "1 or more, got " + one_line(w[2]));
    return wait;
  }
  if (w.size() == 4) throw usage_error("wait: expected wait " + w[1] + " [SECONDS], got 3 words");
  return word::Wait{choose<WaitFor>(w[0], kWaits, w[1]), seconds_at(w, 2)};
}

ScriptWord make_probe(const Words& w) {
  const word::Probe probe{whole(w, 1), whole(w, 2)};
  if (probe.query < 0 || probe.key < 0) throw usage_error("probe: rows and columns count from 0");
  return probe;
}

ScriptWord make_print(const Words& w) { return word::Print{&parse_script_value(w[0], w[1])}; }

ScriptWord make_expect(const Words& w) {
  word::Expect expect;
  expect.value = &parse_script_value(w[0], w[1]);
  expect.op = choose<CompareOp>("expect: operator", kOps, w[2]);
  expect.text = joined(w, 3);
  if (expect.value->number) {
    expect.number = parse_script_number(fmt::format("expect {}", w[1]), expect.text);
  } else if (expect.op != CompareOp::equal && expect.op != CompareOp::unequal) {
    throw usage_error(
        fmt::format("expect {}: is a word, and is compared by == or !=, not {}", w[1], w[2]));
  }
  const std::vector<std::string>& values = expect.value->told;
  if (!values.empty() && std::find(values.begin(), values.end(), expect.text) == values.end()) {
    throw unknown_name(fmt::format("expect {}", w[1]), expect.text, values);
  }
  return expect;
}
ScriptWord make_shot(const Words& w) { return word::Shot{w[1]}; }
ScriptWord make_save(const Words& w) { return word::SaveSession{w[1]}; }
ScriptWord make_save_mask(const Words& w) { return word::SaveMask{w[1]}; }
ScriptWord make_save_heads(const Words& w) { return word::SaveHeads{w[1]}; }
ScriptWord make_quit(const Words&) { return word::Quit{}; }

bool is_any(const Words&) { return true; }
bool is_walk_of_entry(const Words& w) { return w.size() == 2; }
bool is_pin_alone(const Words& w) { return w.size() == 2; }
bool is_film_played(const Words& w) { return w.size() == 2 && (w[1] == "play" || w[1] == "stop"); }
bool is_film_file(const Words& w) {
  return w.size() == 2 && w[1].find_first_of("./") != std::string::npos;
}
bool is_other_capture(const Words& w) { return w.size() > 1 && w[1] == "capture"; }
bool is_other_shown(const Words& w) { return w.size() > 1 && w[1] == "show"; }

/// A command that is no setting.
struct WordRule {
  std::string_view name;
  size_t least, most;  ///< words behind the name
  ScriptWord (*make)(const Words&);
  ScriptWordHelp help;
  bool (*fits)(const Words&) = is_any;  ///< of a name that settings have too: the words are its own
};

constexpr size_t kAny = 1000;

/// The first are listed before settings, the others behind them.
constexpr size_t kFirstRules = 2;

std::vector<WordRule> rules_of_view() {
  return {
      {"open", 1, 1, make_open, {"open PATH", "open a capture or a session"}},
      {"size", 2, 2, make_size, {"size W H", "make the window so many pixels wide and high"}},
      {"fit", 0, 0, make_fit, {"fit", "show the whole map"}},
      {"pin", 1, 1, make_go_to_pin, {"pin N", "go to the pin of this number"}, is_pin_alone},
      {"unpin", 1, 1, make_unpin, {"unpin N", "let the pin of this number go"}},
      {"walk",
       1,
       1,
       make_walk_entry,
       {"walk smaller|larger",
        "read the next entry of the row by size, the largest first, as if the mouse were on it"},
       is_walk_of_entry},
      {"walk",
       2,
       2,
       make_walk,
       {"walk x|y|t N", "pick the token N places further; N may be below 0"}},
      {"play", 1, 1, make_play, {"play on|off", "go through the steps by itself"}},
      {"film",
       1,
       1,
       make_play_film,
       {"film play|stop", "play the film, one moment large"},
       is_film_played},
      {"film",
       1,
       1,
       make_save_film,
       {"film FILE.gif|.mp4|.png|.svg|.pdf|FOLDER/", "write the film that is seen"},
       is_film_file},
      {"figure",
       1,
       1,
       make_save_figure,
       {"figure FILE.pdf|.svg|.png", "write the map as it is seen, once it is exact, as a page"}},
      {"b",
       2,
       2,
       make_open_other,
       {"b capture PATH", "open a second capture or export, of which B's heads are from then on"},
       is_other_capture},
      {"b",
       2,
       2,
       make_show_other,
       {"b show on|off", "B in place of A, as while its key is held"},
       is_other_shown}};
}

/// The mouse, the keys, waiting, numbers and files.
std::vector<WordRule> rules_of_use() {
  return {
      {"click", 1, 1, make_click, {"click LABEL", "click what has this label: \"Pane/Name\""}},
      {"hover", 1, 1, make_hover, {"hover LABEL", "move the mouse there, and leave it there"}},
      {"drag",
       5,
       7,
       make_drag,
       {"drag LABEL X0 Y0 X1 Y1 [shift] [ctrl]",
        "drag from one place of what has this label to another, in shares of its sides"}},
      {"wheel",
       2,
       2,
       make_wheel,
       {"wheel LABEL N", "turn the wheel over it by N notches, a frame each: up, or down below 0"}},
      {"type",
       1,
       kAny,
       make_type,
       {"type TEXT", "type into the field that takes text: the palette's"}},
      {"key", 1, 1, make_key, {"key CHORD", "press a key: Ctrl+Z, Alt+Left, ["}},
      {"wait",
       1,
       3,
       make_wait,
       {"wait picture|query|exact|atlas|mask|idle [SECONDS] | wait calls|pictures N [SECONDS]",
        "go on when it is there; 60 s at most"}},
      {"probe",
       2,
       2,
       make_probe,
       {"probe Q K", "wait for one entry of the map and print it as a line of JSON"}},
      {"print", 1, 1, make_print, {"print NAME", "print a number or word of the window's state"}},
      {"expect",
       3,
       kAny,
       make_expect,
       {"expect NAME OP VALUE", "fail unless it compares so: == != < <= > >="}},
      {"shot", 1, 1, make_shot, {"shot FILE", "write the window as a PNG"}},
      {"save-session", 1, 1, make_save, {"save-session FILE", "write what is open and shown"}},
      {"save-mask",
       1,
       1,
       make_save_mask,
       {"save-mask FILE.npy", "write the mask's blocks, and FILE.npy.json of what they are"}},
      {"save-heads",
       1,
       1,
       make_save_heads,
       {"save-heads FILE.json", "write the selected heads as a list for --from"}},
      {"quit", 0, 0, make_quit, {"quit", "end the program"}}};
}

const std::vector<WordRule>& rules() {
  static const std::vector<WordRule> kRules = [] {
    std::vector<WordRule> all = rules_of_view();
    for (const WordRule& rule : rules_of_use()) all.push_back(rule);
    return all;
  }();
  return kRules;
}

/// The second words of rules of a name: "play", "stop" of `film play|stop`.
std::vector<std::string> second_words(std::string_view name) {
  std::vector<std::string> words;
  for (const WordRule& rule : rules()) {
    if (rule.name != name) continue;
    std::string_view rest =
        rule.help.usage.substr(std::min(name.size() + 1, rule.help.usage.size()));
    rest = rest.substr(0, rest.find(' '));
    while (!rest.empty()) {
      const size_t bar = std::min(rest.find('|'), rest.size());
      words.emplace_back(rest.substr(0, bar));
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
  }
  return words;
}

Error refused_count(const WordRule& rule, const Words& words) {
  const size_t given = words.size() - 1;
  return usage_error(fmt::format("{}: expected {}, got {} {}", rule.name, rule.help.usage, given,
                                 given == 1 ? "word" : "words"));
}

}  // namespace

std::string_view wait_name(WaitFor what) { return kWaits[static_cast<size_t>(what)]; }
std::string_view compare_op_text(CompareOp op) { return kOps[static_cast<size_t>(op)]; }

const std::vector<ScriptWordHelp>& script_word_help() {
  static const std::vector<ScriptWordHelp> kHelp = [] {
    std::vector<ScriptWordHelp> help;
    const auto add_rules = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) help.push_back(rules()[i].help);
    };
    add_rules(0, kFirstRules);
    for (const Setting& setting : settings()) help.push_back({setting.usage, setting.help});
    add_rules(kFirstRules, rules().size());
    return help;
  }();
  return kHelp;
}

ScriptWord parse_script_words(std::span<const std::string> words) {
  for (const WordRule& rule : rules()) {
    if (rule.name != words[0] || !rule.fits(words)) continue;
    const size_t given = words.size() - 1;
    if (given < rule.least || given > rule.most) throw refused_count(rule, words);
    return rule.make(words);
  }
  if (auto parsed = parse_setting(words, second_words(words[0]))) {
    return word::Set{std::move(parsed->change), parsed->setting};
  }
  std::vector<std::string> names;
  for (const ScriptWordHelp& help : script_word_help()) {
    std::string name(help.usage.substr(0, help.usage.find(' ')));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const std::string nearest = nearest_word(words[0], names);
  throw usage_error(fmt::format("{}: no such command{}", one_line(words[0]),
                                nearest.empty() ? fmt::format(" ({})", fmt::join(names, ", "))
                                                : ", did you mean " + nearest + "?"));
}

}  // namespace attnscope
