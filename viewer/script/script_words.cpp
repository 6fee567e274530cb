#include "viewer/script/script_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/pictures/colormap.h"
#include "viewer/script/script_arguments.h"
#include "viewer/script/timeline_words.h"
#include "viewer/script/volume_words.h"
#include "viewer/view/heads/atlas_filter.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_names.h"
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

/// A name of the state's lists.
template <typename Enum>
Enum state_name(const Words& words, std::optional<Enum> parsed,
                const std::vector<std::string>& names) {
  if (!parsed) throw unknown_name(words[0], words[1], names);
  return *parsed;
}

ScriptWord act(Action action) { return word::Act{std::move(action)}; }

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

ScriptWord make_select(const Words& w) {
  constexpr std::array kAxes{HeadAxis::step, HeadAxis::layer,  HeadAxis::chunk,
                             HeadAxis::kind, HeadAxis::branch, HeadAxis::block,
                             HeadAxis::slot, HeadAxis::batch,  HeadAxis::head};
  constexpr std::array kNamed{HeadAxis::kind, HeadAxis::branch, HeadAxis::block, HeadAxis::slot};
  if (w.size() == 3) {
    whole(w, 1);
    whole(w, 2);
    return word::SelectLayerHead{w[1], w[2]};
  }
  for (const HeadAxis axis : kAxes) {
    if (head_axis_name(axis) != w[0]) continue;
    if (std::find(kNamed.begin(), kNamed.end(), axis) == kNamed.end()) whole(w, 1);
    return word::Select{axis, w[1]};
  }
  throw usage_error(w[0] + ": selects nothing");
}

ScriptWord make_query(const Words& w) {
  if (w[1] == "text" && w.size() == 3) return word::QueryText{whole(w, 2)};
  if (w[1] == "token" && w.size() == 3) return word::QueryToken{whole(w, 2)};
  if (w[1] == "text" || w[1] == "token" || w.size() != 4) {
    throw usage_error("query: expected query T Y X, query text N or query token N");
  }
  const bool box = std::any_of(w.begin() + 1, w.end(), [](const std::string& each) {
    return each.find(':') != std::string::npos;
  });
  if (box) return word::QueryBox{fmt::format("{}", fmt::join(w.subspan(1), ","))};
  return word::QueryAt{{whole(w, 1), whole(w, 2), whole(w, 3)}};
}

ScriptWord make_reverse(const Words& w) {
  if (w[1] != "on" && w[1] != "off") throw unknown_name(w[0], w[1], {"on", "off"});
  return act(action::SetReverse{w[1] == "on"});
}

ScriptWord make_segment(const Words& w) { return word::ShowSegment{w[1] == "none" ? "" : w[1]}; }

/// A number that cells can show, or `usual`, which is the empty word.
std::string atlas_number(const Words& w, size_t at, const std::string& usual) {
  if (w[at] == usual) return "";
  std::vector<std::string> names = atlas_metrics();
  if (std::find(names.begin(), names.end(), w[at]) != names.end()) return w[at];
  names.insert(names.begin(), usual);
  throw unknown_name(at == 1 ? "atlas" : "atlas " + w[1], w[at], names);
}

ScriptWord make_atlas(const Words& w) {
  const bool alone = w.size() == 2;
  if (alone) {
    for (const char* const part : {"on", "off", "exact", "sampled"}) {
      if (w[1] == part) return word::ShowAtlas{part, ""};
    }
  } else if (w[1] == "sort" && w.size() == 3) {
    return word::ShowAtlas{"sort", atlas_number(w, 2, "layers")};
  } else if (w[1] == "filter") {
    const std::string filter = fmt::format("{}", fmt::join(w.subspan(2), " "));
    if (filter == "none") return word::ShowAtlas{"filter", ""};
    AtlasFilter::parse(filter);
    return word::ShowAtlas{"filter", filter};
  }
  if (!alone || w[1] == "sort" || w[1] == "filter") {
    throw usage_error(
        "atlas: expected on, off, exact, sampled, thumbnails, METRIC, sort METRIC, sort layers, "
        "filter WORDS or filter none");
  }
  return word::ShowAtlas{"cells", atlas_number(w, 1, "thumbnails")};
}

ScriptWord make_volume(const Words& w) { return word::ShowVolume{parse_volume_words(w)}; }
ScriptWord make_timeline(const Words& w) { return word::ShowTimeline{parse_timeline_words(w)}; }
ScriptWord make_frames(const Words& w) {
  if (w[1] != "on" && w[1] != "off") throw unknown_name(w[0], w[1], {"on", "off"});
  return act(action::ShowFrames{w[1] == "on"});
}
ScriptWord make_pin(const Words& w) {
  const int64_t number = whole(w, 1);
  if (w.size() == 2) return word::GoToPin{number};
  if (w.size() == 3) throw usage_error("pin: expected pin N, or pin N Q K, got 2 words");
  return act(action::SetPin{number, Pin{whole(w, 2), whole(w, 3)}});
}
ScriptWord make_unpin(const Words& w) { return act(action::SetPin{whole(w, 1), {}}); }
ScriptWord make_track(const Words& w) { return parse_track(w); }
ScriptWord make_play(const Words& w) { return word::Play{parse_play_words(w)}; }
ScriptWord make_words(const Words& w) { return parse_words(w); }
ScriptWord make_word(const Words& w) { return parse_word(w); }

ScriptWord make_film(const Words& w) { return parse_film(w); }
ScriptWord make_mask(const Words& w) { return parse_mask(w); }

ScriptWord make_product(const Words& w) {
  return act(action::SetProduct{state_name(w, parse_product(w[1]), product_names())});
}
ScriptWord make_pool(const Words& w) {
  return act(action::SetPool{state_name(w, parse_pool(w[1]), pool_names())});
}
ScriptWord make_scale(const Words& w) {
  return act(action::SetScale{state_name(w, parse_scale_kind(w[1]), scale_kind_names())});
}
ScriptWord make_colormap(const Words& w) {
  state_name(w, parse_colormap(w[1]), colormap_names());
  return act(action::SetColormap{w[1]});
}

ScriptWord make_range(const Words& w) {
  if (w.size() == 2) {
    if (w[1] != "auto" && w[1] != "minmax") {
      throw usage_error("range: expected range LO HI, range auto or range minmax");
    }
    ColourRange range;
    range.whole = w[1] == "minmax";
    return act(action::SetRange{range});
  }
  const double low = number(w, 1);
  const double high = number(w, 2);
  if (!(low < high)) {
    throw usage_error(
        fmt::format("range: the low end must be below the high end, got {} {}", w[1], w[2]));
  }
  return act(action::SetRange{{false, low, high}});
}

ScriptWord make_aspect(const Words& w) {
  if (w[1] != "equal" && w[1] != "fill") throw unknown_name("aspect", w[1], {"equal", "fill"});
  return act(action::EqualAxes{w[1] == "equal"});
}

ScriptWord make_order(const Words& w) { return parse_order(w); }

ScriptWord make_zoom(const Words& w) {
  const MapRect rect{number(w, 1), number(w, 2), number(w, 3), number(w, 4)};
  if (!(rect.q0 < rect.q1) || !(rect.k0 < rect.k1)) {
    throw usage_error(
        fmt::format("zoom: expected Q0 < Q1 and K0 < K1, got {} {} {} {}", w[1], w[2], w[3], w[4]));
  }
  return act(action::SetRect{rect});
}

ScriptWord make_fit(const Words&) { return act(action::Fit{}); }

ScriptWord make_pane(const Words& w) {
  if (w[1] == "all") return act(action::Maximise{});
  std::vector<std::string> names = pane_names();
  names.emplace_back("all");
  if (w[1] == "metrics") return act(action::Maximise{ViewPane::timeline});
  return act(action::Maximise{state_name(w, parse_pane(w[1]), names)});
}

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
ScriptWord make_type(const Words& w) {
  std::string text;
  for (const std::string& word : w.subspan(1)) text += (text.empty() ? "" : " ") + word;
  return word::Type{text};
}
ScriptWord make_key(const Words& w) { return word::PressKey{parse_chord(w[1])}; }

ScriptWord word_of(CompareWord parsed) {
  if (const Action* const action = std::get_if<Action>(&parsed)) return act(*action);
  if (const auto* const head = std::get_if<word::SelectOther>(&parsed)) return *head;
  if (const auto* const capture = std::get_if<word::OpenOther>(&parsed)) return *capture;
  return std::get<word::ShowOther>(parsed);
}
ScriptWord make_other(const Words& w) { return word_of(parse_other(w)); }
ScriptWord make_difference(const Words& w) { return word_of(parse_difference_word(w)); }

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

ScriptWord make_print(const Words& w) { return word::Print{parse_script_name(w[0], w[1])}; }

ScriptWord make_expect(const Words& w) {
  word::Expect expect;
  expect.name = parse_script_name(w[0], w[1]);
  expect.op = choose<CompareOp>("expect: operator", kOps, w[2]);
  expect.text = fmt::format("{}", fmt::join(w.subspan(3), " "));
  if (is_number(expect.name)) {
    expect.number = parse_script_number(fmt::format("expect {}", w[1]), expect.text);
  } else if (expect.op != CompareOp::equal && expect.op != CompareOp::unequal) {
    throw usage_error(
        fmt::format("expect {}: is a word, and is compared by == or !=, not {}", w[1], w[2]));
  }
  const auto values = script_name_values(expect.name);
  if (!values.empty() && std::find(values.begin(), values.end(), expect.text) == values.end()) {
    throw unknown_name(fmt::format("expect {}", w[1]), expect.text, values);
  }
  return expect;
}

ScriptWord make_shot(const Words& w) { return word::Shot{w[1]}; }
ScriptWord make_save(const Words& w) { return word::SaveSession{w[1]}; }
ScriptWord make_save_mask(const Words& w) { return word::SaveMask{w[1]}; }
ScriptWord make_quit(const Words&) { return word::Quit{}; }

struct WordRule {
  std::string_view name;
  size_t least, most;  ///< words behind the name
  ScriptWord (*make)(const Words&);
  ScriptWordHelp help;
};

constexpr size_t kAny = 1000;

const std::vector<WordRule>& rules() {
  static const std::vector<WordRule> kRules{
      {"open", 1, 1, make_open, {"open PATH", "open a capture or a session"}},
      {"size", 2, 2, make_size, {"size W H", "make the window so many pixels wide and high"}},
      {"step", 1, 1, make_select, {"step V", "show the denoising step that was recorded as V"}},
      {"layer", 1, 1, make_select, {"layer V", "show the layer that was recorded as V"}},
      {"chunk", 1, 1, make_select, {"chunk V", "show the piece of a stream recorded as V"}},
      {"kind", 1, 1, make_select, {"kind V", "show a kind of attention: self, cross, joint"}},
      {"branch", 1, 1, make_select, {"branch V", "show a guidance branch: cond, uncond, ..."}},
      {"block", 1, 1, make_select, {"block V", "show the model's block of this name"}},
      {"slot",
       1,
       1,
       make_select,
       {"slot V", "show the attention of this name in a block: attn1, ..."}},
      {"batch", 1, 1, make_select, {"batch V", "show an item of the batch"}},
      {"head", 1, 2, make_select, {"head V | head L H", "show a head; or a layer and a head"}},
      {"query",
       2,
       3,
       make_query,
       {"query T Y X | query text N | query token N",
        "pick a token by its latent place, its place in the text, or in the sequence; the mean of "
        "several by ranges A:B"}},
      {"reverse",
       1,
       1,
       make_reverse,
       {"reverse on|off", "show who attends to the token, not what it attends to"}},
      {"segment",
       1,
       1,
       make_segment,
       {"segment NAME|none", "film another segment of the token map; none: the video again"}},
      {"atlas",
       1,
       kAny,
       make_atlas,
       {"atlas on|off|exact|sampled|thumbnails|METRIC | atlas sort METRIC|layers | atlas filter "
        "WORDS|none",
        "all heads of the step, as pictures or by a number of stats"}},
      {"volume",
       1,
       3,
       make_volume,
       {"volume on|off|max|emission | volume threshold V | volume orbit AZ EL | volume zoom Z | "
        "volume slice t|y|x N|none",
        "the query's row as a volume in the film's place: angles in degrees, V from 0 to 1 on the "
        "colours"}},
      {"timeline",
       1,
       2,
       make_timeline,
       {"timeline on|off|METRIC|none | timeline over steps|layers | timeline loop|follow on|off | "
        "timeline speed N",
        "the strip of steps, a number of the head as a curve, how it plays (steps a second), and "
        "whether it goes to steps as they are added"}},
      {"track",
       2,
       2,
       make_track,
       {"track rows entropy|lse|text|off | track keys mass|off",
        "a number of every query and the mean weight of every key, beside the map"}},
      {"pin",
       1,
       3,
       make_pin,
       {"pin N Q K | pin N", "keep an entry of the map under a number from 1 to 8; go to it"}},
      {"unpin", 1, 1, make_unpin, {"unpin N", "let the pin of this number go"}},
      {"frames",
       1,
       1,
       make_frames,
       {"frames on|off",
        "the mass that each frame's queries put on each frame, as a small matrix"}},
      {"play", 1, 1, make_play, {"play on|off", "go through the steps by itself"}},
      {"words",
       1,
       kAny,
       make_words,
       {"words on|off | words special on|off | words sort prompt|mass | words filter TEXT|none",
        "the prompt's words and what they get"}},
      {"word",
       1,
       1,
       make_word,
       {"word N[,N...]|A-B|\"TEXT\"|none",
        "the film of these words, added up; none: the query's again"}},
      {"film",
       1,
       2,
       make_film,
       {"film none|tint|outline|contour|opacity X | film all|one|frame N|play|stop|loop "
        "on|off|rate "
        "N|auto | film latent|nearest|linear | film FILE.gif|.mp4|.png|.svg|.pdf|FOLDER/",
        "the query's film over the video, played, resampled, written"}},
      {"mask",
       1,
       5,
       make_mask,
       {"mask PATTERN|FILE.json|FILE.npy [BLOCK] | mask on|off | mask keep|drop Q0 Q1 K0 K1 | "
        "mask unedited | mask brush keep|drop|off | mask lost on|off",
        "a sparse mask over the matrix, as attnscope mask reads it (blocks as FILE.npy.json says, "
        "else of 128 tokens unless "
        "told); its pane; no mask; entries of it kept or dropped by hand; what dragging does; what "
        "is dropped by the weight lost there"}},
      {"product", 1, 1, make_product, {"product weights|logits|lift", "what numbers are shown"}},
      {"pool", 1, 1, make_pool, {"pool max|mean", "what a texel shows of its entries"}},
      {"scale",
       1,
       1,
       make_scale,
       {"scale log|linear|sqrt|symlog", "how values are spread over the colours"}},
      {"colormap", 1, 1, make_colormap, {"colormap NAME", "viridis, cividis, magma, ..."}},
      {"range",
       1,
       2,
       make_range,
       {"range LO HI | range auto|minmax",
        "the values at the colours' ends: these, where the mass of what is seen is, all of it"}},
      {"zoom", 4, 4, make_zoom, {"zoom Q0 Q1 K0 K1", "show these queries and keys of the map"}},
      {"fit", 0, 0, make_fit, {"fit", "show the whole map"}},
      {"aspect",
       1,
       1,
       make_aspect,
       {"aspect equal|fill", "an entry as high as it is wide, or the map as large as the pane"}},
      {"order",
       1,
       2,
       make_order,
       {"order stored|raster|yxt|tiles:TxHxW|hilbert|morton|FILE [rows|keys]",
        "the order in which the matrix has its tokens: both sides, or one; FILE holds the token at "
        "each place"}},
      {"pane",
       1,
       1,
       make_pane,
       {"pane NAME",
        "show one pane alone: matrix, query, histogram, atlas, words, volume, timeline (or "
        "metrics), "
        "mask, frames, ranked; or all of them"}},
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
      {"b",
       1,
       3,
       make_other,
       {"b capture PATH | b step|layer|chunk|branch|block|slot|batch|head V | b head L H | b split "
        "SHARE|off | b show on|off | b lock|release zoom|range|cursor | b ranked on|off | b off",
        "side B: which head it is; where the map shows it; what it has in common with A"}},
      {"difference",
       1,
       1,
       make_difference,
       {"difference off|signed|abs|logratio", "show A - B, its size, or log2(A / B)"}},
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
      {"quit", 0, 0, make_quit, {"quit", "end the program"}}};
  return kRules;
}

}  // namespace

std::string_view wait_name(WaitFor what) { return kWaits[static_cast<size_t>(what)]; }
std::string_view compare_op_text(CompareOp op) { return kOps[static_cast<size_t>(op)]; }

const std::vector<ScriptWordHelp>& script_word_help() {
  static const std::vector<ScriptWordHelp> kHelp = [] {
    std::vector<ScriptWordHelp> help;
    for (const WordRule& rule : rules()) help.push_back(rule.help);
    return help;
  }();
  return kHelp;
}

ScriptWord parse_script_words(std::span<const std::string> words) {
  for (const WordRule& rule : rules()) {
    if (rule.name != words[0]) continue;
    const size_t given = words.size() - 1;
    if (given >= rule.least && given <= rule.most) return rule.make(words);
    throw usage_error(fmt::format("{}: expected {}, got {} {}", rule.name, rule.help.usage, given,
                                  given == 1 ? "word" : "words"));
  }
  std::vector<std::string> names;
  for (const WordRule& rule : rules()) names.emplace_back(rule.name);
  const std::string nearest = nearest_word(words[0], names);
  throw usage_error(fmt::format("{}: no such command{}", one_line(words[0]),
                                nearest.empty() ? fmt::format(" ({})", fmt::join(names, ", "))
                                                : ", did you mean " + nearest + "?"));
}

}  // namespace attnscope
