// Every setting of a state: what is written of it brings it back.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/settings/settings.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/maps/map_source.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 28;

/// Two steps of two layers, each with two branches; four words before four frames of 2 x 3.
std::vector<MapSource> calls() {
  std::vector<MapSource> all;
  for (const int64_t step : {0, 10}) {
    for (const int64_t layer : {3, 12}) {
      MapSource call;
      call.name = "call";
      call.step = step;
      call.layer = layer;
      call.branches = {"uncond", "cond"};
      call.batch = {0, 1};
      call.heads = {0, 1, 2};
      call.queries = call.keys = TokenGrid::video(kTokens, {4, 2, 3}, 4, TextPlace::start);
      call.tokens = {{"a", "red", "circle", "[PAD]"}};
      all.push_back(call);
    }
  }
  return all;
}

TokenOrder listed(const std::string& file) {
  std::vector<int64_t> places(kTokens);
  std::iota(places.rbegin(), places.rend(), 0);
  static const auto kList = std::make_shared<const std::vector<int64_t>>(places);
  TokenOrder order;
  order.kind = TokenOrder::Kind::listed;
  order.file = file;
  order.list = kList;
  return order;
}

/// States with every member at random, as far as they can be reached: what contradicts each other
/// is put right at the end.
class RandomStates {
 public:
  explicit RandomStates(const ViewLimits& limits) : limits_(limits) {}

  ViewState operator()() {
    ViewState state = opened_view(limits_);
    // Every member has to be named here: a new one does not compile until it is random too.
    auto& [head, rect, query, reverse, segment, product, pool, scale, colormap, range, theme,
           maximised, show_histogram, atlas, volume, timeline, tracks, show_frames, magnifier, pins,
           words, film, mask, order, other_order, order_number, equal_axes, split_query, other] =
        state;
    head = random_head();
    rect = random_rect();
    if (chance()) query = ChosenQuery{tokens(kTokens)};
    reverse = chance();
    segment = one_of<std::string>({"", "ref", "a \"b\" #c", "none"});
    product = one_of({ViewProduct::weights, ViewProduct::logits, ViewProduct::lift});
    pool = one_of({Pool::max, Pool::mean});
    scale = one_of({ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog});
    colormap = one_of<std::string>({"viridis", "magma", "turbo"});
    range = random_range();
    theme = one_of({ViewTheme::dark, ViewTheme::light});
    if (chance()) maximised = static_cast<ViewPane>(whole(0, 9));
    show_histogram = chance();
    atlas = random_atlas();
    volume = random_volume();
    timeline = random_timeline();
    tracks = {static_cast<RowTrack>(whole(0, 3)), static_cast<KeyTrack>(whole(0, 1))};
    show_frames = chance();
    magnifier = chance();
    for (int64_t number = 1; number <= kPins; ++number) {
      if (chance()) pins.set(number, Pin{whole(0, kTokens - 1), whole(0, kTokens - 1)});
    }
    words = random_words();
    film = random_film();
    mask = random_mask();
    order = {random_order(), random_order()};
    other_order = {random_order(), random_order()};
    order_number = 0;  // of what is shown, not of what is looked at
    equal_axes = chance();
    split_query = static_cast<float>(real(0.1, 0.9));
    if (chance()) other = random_other(state);
    make_possible(state);
    return state;
  }

 private:
  bool chance() { return whole(0, 1) == 1; }
  int64_t whole(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + whole(0, static_cast<int64_t>(values.size()) - 1));
  }
  std::string metric() {
    std::vector<std::string> names = atlas_metrics();
    names.emplace_back();
    return names[static_cast<size_t>(whole(0, static_cast<int64_t>(names.size()) - 1))];
  }
  std::vector<int64_t> tokens(int64_t count) {
    std::vector<int64_t> all;
    for (int64_t token = 0; token < count; ++token) {
      if (whole(0, 3) == 0) all.push_back(token);
    }
    if (all.empty()) all.push_back(whole(0, count - 1));
    return all;
  }
  HeadId random_head() { return {whole(0, 3), whole(0, 1), whole(0, 2)}; }
  MapRect random_rect() {
    const double q = real(-2, 20), k = real(-2, 20);
    return clamped_rect({q, q + real(4, 12), k, k + real(4, 12)}, kTokens, kTokens);
  }
  ColourRange random_range() {
    const int64_t kind = whole(0, 2);
    if (kind < 2) return {true, 0, 0, kind == 1};
    const double low = real(1e-9, 1e-3);
    return {false, low, low + real(1e-6, 1)};
  }
  AtlasLook random_atlas() {
    AtlasLook look;
    auto& [shown, metric_name, sort, filter, exact, selected] = look;
    shown = chance();
    metric_name = one_of<std::string>({metric(), kClassCells});
    sort = metric();
    filter = one_of<std::string>({"", "layers=0-3 temporal", "entropy<3"});
    exact = chance();
    selected = one_of<std::string>({"", "3.1,12.2", "10:3.0,refiner.0/attn.1"});
    return look;
  }
  VolumeLook random_volume() {
    VolumeLook look;
    auto& [shown, mode, threshold, azimuth, elevation, zoom, slice] = look;
    shown = chance();
    mode = one_of({VolumeMode::maximum, VolumeMode::emission});
    threshold = real(0, 1);
    azimuth = real(-180, 180);
    elevation = real(-90, 90);
    zoom = real(kLeastVolumeZoom, kMostVolumeZoom);
    if (chance()) slice = VolumeSlice{static_cast<VolumeAxis>(whole(0, 2)), whole(0, 50)};
    return look;
  }
  TimelineLook random_timeline() {
    TimelineLook look;
    auto& [shown, metric_name, over, loop, speed, follow] = look;
    shown = chance();
    metric_name = metric();
    over = one_of({CurveAxis::steps, CurveAxis::layers});
    loop = chance();
    speed = real(kLeastPlaySpeed, kMostPlaySpeed);
    follow = chance();
    return look;
  }
  WordsLook random_words() {
    WordsLook look;
    auto& [shown, special, by_mass, filter, chosen] = look;
    shown = chance();
    special = chance();
    by_mass = chance();
    filter = one_of<std::string>({"", "re", "red  \\circle", "none", "\\none", "\\ #"});
    if (chance()) chosen = tokens(4);
    return look;
  }
  FilmLook random_film() {
    FilmLook look;
    auto& [over, mode, opacity, time, one, loop, moment, rate] = look;
    over = chance();
    mode = one_of({FilmMode::tint, FilmMode::outline, FilmMode::contour});
    opacity = static_cast<float>(real(0.01, 1));
    time = one_of({FilmTime::latent, FilmTime::nearest, FilmTime::linear});
    one = chance();
    loop = chance();
    moment = whole(0, 200);
    rate = static_cast<int>(whole(0, kMostFilmRate));
    return look;
  }
  MaskLook random_mask() {
    MaskLook look;
    auto& [shown, text, block, edits, lost, brush] = look;
    shown = chance();
    text = one_of<std::string>({"", "none", "topk:block=32,keep=0.2", "/far/blocks #1.npy"});
    if (text.ends_with(".npy")) block = one_of<int64_t>({64, 128});
    for (int64_t i = whole(0, 3); i > 0 && !text.empty(); --i) {
      const int64_t q = whole(0, 20), k = whole(0, 20);
      edits.push_back({q, q + whole(1, 8), k, k + whole(1, 8), chance()});
    }
    lost = chance();
    brush = one_of({MaskBrush::off, MaskBrush::keep, MaskBrush::drop});
    return look;
  }
  TokenOrder random_order() {
    const std::string name =
        one_of<std::string>({"stored", "yxt", "hilbert", "tiles:1x2x2", "/far/order.npy"});
    return name.starts_with("/") ? listed(name) : TokenOrder::parse(name);
  }
  OtherSide random_other(const ViewState& state) {
    OtherSide side;
    auto& [head, difference, split, lock_zoom, lock_range, lock_cursor, rect, range, ranked] = side;
    head = random_head();
    difference = one_of({Difference::off, Difference::signed_difference, Difference::absolute,
                         Difference::log_ratio});
    if (difference == Difference::off && chance()) split = static_cast<float>(real(0, 1));
    lock_zoom = chance();
    lock_range = chance();
    lock_cursor = chance();
    rect = lock_zoom ? state.rect : random_rect();
    if (difference != Difference::off) range = random_range();
    if (!range.automatic && difference != Difference::absolute) range.low = -range.high;
    ranked = chance();
    return side;
  }
  /// Parts that contradict each other cannot be reached.
  static void make_possible(ViewState& state) {
    if (!scale_suits(state.scale, state.product)) state.scale = usual_scale(state.product);
    const bool logits = state.product == ViewProduct::logits;
    if (state.other && logits && state.other->difference == Difference::log_ratio) {
      state.other->difference = Difference::signed_difference;
    }
    if (state.maximised == ViewPane::ranked && !state.other) state.maximised.reset();
    const std::optional<ViewPane> below = pane_below(state);
    if (below) show_below(state, *below);
    if (!state.maximised) return;
    const ViewPane pane = *state.maximised;
    if (pane == ViewPane::histogram) show_below(state, pane);
    if (pane == ViewPane::atlas) state.atlas.shown = true;
    if (pane == ViewPane::volume) state.volume.shown = true;
    if (pane == ViewPane::query) state.volume.shown = false;
    if (pane == ViewPane::timeline) state.timeline.shown = true;
    if (pane == ViewPane::words) state.words.shown = true;
    if (pane == ViewPane::mask) show_below(state, pane);
    if (pane == ViewPane::frames) show_below(state, pane);
    if (pane == ViewPane::ranked) show_below(state, pane);
  }
  /// One pane alone stands below the query.
  static void show_below(ViewState& state, ViewPane pane) {
    state.show_histogram = state.show_histogram || pane == ViewPane::histogram;
    state.show_frames = pane == ViewPane::frames;
    state.mask.shown = pane == ViewPane::mask;
    if (state.other) state.other->ranked = pane == ViewPane::ranked;
  }

  const ViewLimits& limits_;
  std::mt19937_64 random_{2026};
};

/// The state after lines of settings, in a window that was just opened.
ViewState after(const std::vector<std::string>& lines, const HeadPicker& picker,
                const ViewLimits& limits, const SettingFiles& files) {
  ViewState state = opened_view(limits);
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
    const std::vector<std::string> words = script_line_words(line.substr(0, line.size() - 1));
    const auto parsed = parse_setting(words);
    REQUIRE(parsed);
    state = apply_action(state,
                         parsed->change({.state = state,
                                         .picker = &picker,
                                         .others = &picker,
                                         .files = &files,
                                         .of_this_head = false}),
                         limits);
  }
  return state;
}

const SettingFiles& far_files() {
  // Files lie in /far, and lines name them from there.
  static const SettingFiles kFiles{
      .read_order = [](const std::string& name) { return listed("/far/" + name); },
      .whole_mask = [](const std::string& name) { return "/far/" + name; },
      .written_mask = [](const std::string& name) { return name.substr(5); },
      .written_order = [](const std::string& name) { return name.substr(5); }};
  return kFiles;
}

}  // namespace

TEST_CASE("the lines of any state bring it back") {
  const HeadPicker picker(calls());
  const ViewLimits limits = ViewLimits::of(picker.calls());
  RandomStates random(limits);
  std::set<std::string> words;
  for (int i = 0; i < 300; ++i) {
    const ViewState state = random();
    ViewState now = opened_view(limits);
    const SettingPlace place{.state = state,
                             .picker = &picker,
                             .others = &picker,
                             .files = &far_files(),
                             .of_this_head = false};
    const auto lines = setting_lines(
        place, limits, [](const Setting&) { return true; }, now);
    std::string text;
    for (const std::string& line : lines) {
      text += line;
      words.insert(line.substr(0, line.find(' ')));
    }
    CAPTURE(i, text);
    REQUIRE(now == state);
    REQUIRE(after(lines, picker, limits, far_files()) == state);
  }
  // All of the table's words were needed; the head is one line.
  const std::set<std::string> of_head{"layer", "chunk", "kind",  "branch",
                                      "block", "slot",  "batch", "head"};
  for (const Setting& setting : settings()) {
    const std::string word(setting.word());
    INFO(word);
    CHECK(words.contains(word) != of_head.contains(word));
  }
}

TEST_CASE("a state that is as at first has no lines but its head's") {
  const HeadPicker picker(calls());
  const ViewLimits limits = ViewLimits::of(picker.calls());
  const ViewState first = opened_view(limits);
  ViewState now = first;
  const SettingPlace place{.state = first, .picker = &picker, .others = &picker};
  const auto all = [](const Setting&) { return true; };
  CHECK(setting_lines(place, limits, all, now).empty());
  // What a line brings by itself is not written.
  const ViewState logits = apply_action(first, action::SetProduct{ViewProduct::logits}, limits);
  const SettingPlace at{.state = logits, .picker = &picker, .others = &picker};
  CHECK(setting_lines(at, limits, all, now) == std::vector<std::string>{"product logits\n"});
}

TEST_CASE("several values of a head are found together, or not at all") {
  std::vector<MapSource> some = calls();
  some.pop_back();  // step 10 has no layer 12
  const HeadPicker picker(some);
  const ViewLimits limits = ViewLimits::of(picker.calls());
  const auto head = [&](const std::string& line) {
    return after({line + "\n"}, picker, limits, far_files()).head;
  };
  CHECK(head("step 10 layer 3 branch cond head 2") == HeadId{2, 1, 2});
  CHECK(head("layer 12 step 0 batch 1 head 1") == HeadId{1, 1, 1});
  CHECK(usage_text([&] { head("step 10 layer 12"); }) ==
        "step 10 layer 12: not together in this capture");
  // One value takes the nearest of the others, as ever.
  CHECK(head("layer 12") == HeadId{1, 0, 0});
  CHECK(has(usage_text([&] { head("step 10 layers 12"); }), "did you mean layer?"));
  CHECK(has(usage_text([&] { head("step 10 layer"); }), "expected one value"));
  CHECK(has(usage_text([&] { head("step 10 layer x"); }), "expected a whole number"));
}

TEST_CASE("settings that are on or off are told and switched by their word") {
  ViewState state;
  for (const char* word : {"atlas", "volume", "timeline", "words", "mask", "frames", "histogram"}) {
    INFO(word);
    const HeadPicker picker(calls());
    const ViewLimits limits = ViewLimits::of(picker.calls());
    state = opened_view(limits);
    const bool before = is_setting_on(word, state);
    const ViewState other = apply_action(state, toggled(word, state), limits);
    CHECK(is_setting_on(word, other) != before);
    CHECK(apply_action(other, toggled(word, other), limits) == state);
  }
  // A mask that is hidden stays.
  state.mask = {true, "causal"};
  const Action hidden = toggled("mask", state);
  CHECK(std::get<action::SetMask>(hidden).look == MaskLook{false, "causal"});
}
