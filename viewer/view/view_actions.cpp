#include "viewer/view/view_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/pictures/colormap.h"
#include "viewer/view/heads/atlas_filter.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/heads/head_list.h"
#include "viewer/view/mask_text.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

/// How narrow a column of the window may become.
constexpr float kLeastShare = 0.1f;

/// One action applied to a copy of the state.
class Applier {
 public:
  Applier(const ViewState& state, const ViewLimits& limits) : state_(state), limits_(limits) {}

  ViewState take() { return std::move(state_); }

  void operator()(const action::SelectHead& a) {
    if (!limits_.has(a.head)) {
      throw usage_error(fmt::format("no such head: call {}, batch item {}, head {}", a.head.call,
                                    a.head.batch, a.head.head));
    }
    const CallLimits before = call();
    state_.head = a.head;
    // Weights of either sign were shown as their logits.
    CallLimits there = call();
    if (!before.weights && there.weights) there.logits = false;
    const ViewProduct product = state_.product;
    fit_product(state_, there);
    if (state_.other && state_.product != product) {
      state_.other->range = {};
      if (!difference_suits(state_.other->difference, quantity())) {
        state_.other->difference = Difference::signed_difference;
      }
    }
    if (call().text != before.text) state_.words.chosen.clear();
    if (call().rows != before.rows || call().cols != before.cols) {
      state_.rect = fit_rect(call().rows, call().cols);
      state_.query.reset();
      state_.pins = {};
    }
    if (state_.other && !other_problem(state_.other->head).empty()) forget_other();
    if (!map_order_problem(state_.order).empty()) state_.order = {};
  }

  void operator()(const action::SetRect& a) { show(a.rect); }

  void operator()(const action::ZoomAt& a) {
    if (!std::isfinite(a.factor) || !(a.factor > 0)) {
      throw usage_error(fmt::format("zoom by {}: expected a factor above 0", a.factor));
    }
    const auto zoomed = [&](double& begin, double& end, double centre, int64_t count) {
      // A factor that goes too far is cut about the cursor too, so that the entry stays there.
      const double wanted = std::clamp((end - begin) / a.factor, 1.0, static_cast<double>(count));
      const MapRect possible = clamped_rect({0, wanted, 0, 1}, count, 1);
      const double by = (end - begin) / (possible.q1 - possible.q0);
      begin = centre + (begin - centre) / by;
      end = centre + (end - centre) / by;
    };
    MapRect rect = state_.rect;
    if (a.side != action::MapSide::keys) zoomed(rect.q0, rect.q1, a.query, call().rows);
    if (a.side != action::MapSide::rows) zoomed(rect.k0, rect.k1, a.key, call().cols);
    show(rect);
  }

  void operator()(const action::Pan& a) {
    const MapRect& now = state_.rect;
    show({now.q0 + a.queries, now.q1 + a.queries, now.k0 + a.keys, now.k1 + a.keys});
  }

  void operator()(const action::Fit&) { state_.rect = fit_rect(call().rows, call().cols); }

  void operator()(const action::PickQuery& a) {
    if (a.query.tokens.empty()) throw usage_error("no token was chosen");
    const int64_t extent = state_.reverse ? call().cols : call().rows;
    std::vector<int64_t> tokens = a.query.tokens;
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (const int64_t token : {tokens.front(), tokens.back()}) {
      if (token < 0 || token >= extent) {
        throw usage_error(fmt::format("token {}: outside the {} (valid 0 to {})", token,
                                      state_.reverse ? "keys" : "queries", extent - 1));
      }
    }
    state_.query = ChosenQuery{std::move(tokens)};
  }

  void operator()(const action::DropQuery&) { state_.query.reset(); }

  void operator()(const action::SetReverse& a) {
    if (state_.reverse != a.on && !call().one_sequence) state_.query.reset();
    state_.reverse = a.on;
  }

  void operator()(const action::SetSegment& a) { state_.segment = a.name; }

  void operator()(const action::SetProduct& a) {
    if (state_.product == a.product) return;
    const bool wants_logits = a.product == ViewProduct::logits;
    if (wants_logits ? !call().logits : !call().weights) {
      throw usage_error(fmt::format("product {}: there are {} only", product_name(a.product),
                                    wants_logits ? "weights" : "logits"));
    }
    if (state_.other) take_product_of_other(a.product);
    const ViewProduct before = state_.product;
    const bool logits = before == ViewProduct::logits || a.product == ViewProduct::logits;
    state_.product = a.product;
    state_.range = {};
    if (logits && state_.scale != ScaleKind::symlog) state_.scale = usual_scale(a.product);
  }

  void operator()(const action::SetPool& a) { state_.pool = a.pool; }

  void operator()(const action::SetScale& a) {
    if (!scale_suits(a.scale, state_.product)) {
      throw usage_error(fmt::format("scale {}: logits can be negative; take linear or symlog",
                                    scale_kind_name(a.scale)));
    }
    state_.scale = a.scale;
    if (!range_suits(state_.range, a.scale)) state_.range = {};
    if (state_.against() && !is_signed(state_.other->difference) &&
        !range_suits(state_.other->range, a.scale)) {
      state_.other->range = {};
    }
  }

  void operator()(const action::SetColormap& a) {
    if (!parse_colormap(a.name)) {
      const auto names = colormap_names();
      const std::string nearest = nearest_word(a.name, names);
      throw usage_error(fmt::format("colormap {}: no such name{} ({})", one_line(a.name),
                                    nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                    fmt::join(names, ", ")));
    }
    state_.colormap = a.name;
  }

  void operator()(const action::SetRange& a) {
    ColourRange& range = state_.against() ? state_.other->range : state_.range;
    if (a.range.automatic) {
      range = {};
      range.whole = a.range.whole;
      return;
    }
    const std::string text = fmt::format("range {:g} {:g}: ", a.range.low, a.range.high);
    if (!std::isfinite(a.range.low) || !std::isfinite(a.range.high) ||
        !(a.range.low < a.range.high)) {
      throw usage_error(text + "the low end must be below the high end");
    }
    if (state_.against() && is_signed(state_.other->difference)) {
      const double end = std::max(std::abs(a.range.low), std::abs(a.range.high));
      range = {false, -end, end};
      return;
    }
    if (!range_suits(a.range, state_.scale)) {
      throw usage_error(text +
                        (state_.scale == ScaleKind::log2
                             ? "a log scale needs a low end above 0"
                             : "a sqrt scale needs a low end of 0 or more") +
                        "; take another scale or range");
    }
    range = a.range;
  }

  void operator()(const action::Switch& a) {
    if (a.part == &ViewState::show_frames && a.on) check_tracks("frames on");
    state_.*a.part = a.on;
    if (a.on && a.part == &ViewState::show_frames) take_place_below(ViewPane::frames);
    if (a.on && a.part == &ViewState::show_histogram) take_place_below(ViewPane::histogram);
    if (a.on) return;
    const auto hide = [&](bool ViewState::*part, ViewPane pane) {
      if (a.part == part && state_.maximised == pane) state_.maximised.reset();
    };
    hide(&ViewState::show_histogram, ViewPane::histogram);
    hide(&ViewState::show_frames, ViewPane::frames);
  }

  void operator()(const action::SetOrder& a) {
    MapOrder wanted = state_.order;
    if (!a.side) {
      wanted = {a.order, a.order};
      // Of cross-attention one side may have a grid.
      const bool rows = order_problem(a.order, call().query_side).empty();
      const bool keys = order_problem(a.order, call().key_side).empty();
      if (rows && !keys) wanted.keys = {};
      if (keys && !rows) wanted.rows = {};
    } else if (*a.side == action::MapSide::rows) {
      wanted.rows = a.order;
    } else {
      wanted.keys = a.order;
    }
    take_order(wanted);
  }

  void operator()(const action::SetOtherOrder& a) {
    if (a.side != action::MapSide::keys) state_.other_order.rows = a.order;
    if (a.side != action::MapSide::rows) state_.other_order.keys = a.order;
  }

  void operator()(const action::FlipOrder&) {
    MapOrder wanted = state_.other_order;
    // The order that nobody has chosen yet is one of those sides that have a grid.
    const auto suits = [](const TokenOrder& order, const OrderedSide& side) {
      return order_problem(order, side).empty();
    };
    const bool rows = suits(wanted.rows, call().query_side);
    const bool keys = suits(wanted.keys, call().key_side);
    if (rows && !keys) wanted.keys = {};
    if (keys && !rows) wanted.rows = {};
    take_order(wanted);
  }

  void operator()(const action::SetTheme& a) { state_.theme = a.theme; }

  void operator()(const action::Maximise& a) {
    state_.maximised = a.pane;
    if (a.pane == ViewPane::histogram) {
      (*this)(action::Switch{&ViewState::show_histogram, true});
    }
    if (a.pane == ViewPane::atlas) state_.atlas.shown = true;
    if (a.pane == ViewPane::volume) state_.volume.shown = true;
    if (a.pane == ViewPane::query) state_.volume.shown = false;
    if (a.pane == ViewPane::ranked) (*this)(action::ShowRanked{true});
    if (a.pane == ViewPane::timeline) {
      state_.timeline.shown = true;
      // Alone, it is a curve.
      if (state_.timeline.metric.empty()) state_.timeline.metric = "entropy";
    }
    if (a.pane == ViewPane::words) state_.words.shown = true;
    if (a.pane == ViewPane::mask) {
      state_.mask.shown = true;
      take_place_below(ViewPane::mask);
    }
    if (a.pane == ViewPane::frames) (*this)(action::Switch{&ViewState::show_frames, true});
  }

  void operator()(const action::SetAtlas& a) {
    const std::string number = a.look.metric == kClassCells ? "" : a.look.metric;
    for (const std::string& name : {number, a.look.sort}) {
      if (name.empty() || find_head_field(name) != nullptr) continue;
      const auto names = atlas_metrics();
      const std::string nearest = nearest_word(name, names);
      throw usage_error(fmt::format("atlas {}: no such number{} ({})", one_line(name),
                                    nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                    fmt::join(names, ", ")));
    }
    AtlasFilter::parse(a.look.filter);
    parse_head_list(a.look.selected, "heads select");
    state_.atlas = a.look;
    if (!a.look.shown && state_.maximised == ViewPane::atlas) state_.maximised.reset();
  }

  void operator()(const action::SetVolume& a) {
    check_volume_look(a.look);
    state_.volume = a.look;
    // Film and volume stand in one place, also where that is the whole window.
    if (state_.maximised == ViewPane::volume && !a.look.shown) state_.maximised = ViewPane::query;
    if (state_.maximised == ViewPane::query && a.look.shown) state_.maximised = ViewPane::volume;
  }

  void operator()(const action::SetTimeline& a) {
    check_timeline_look(a.look);
    state_.timeline = a.look;
    if (!a.look.shown && state_.maximised == ViewPane::timeline) state_.maximised.reset();
  }

  void operator()(const action::SetTracks& a) {
    if (a.look.any()) check_tracks("track");
    state_.tracks = a.look;
  }

  void operator()(const action::SetPin& a) {
    check_pin_number(a.number);
    if (!a.place && !state_.pins.at(a.number)) {
      throw usage_error(fmt::format("unpin {0}: there is no pin {0}", a.number));
    }
    const auto check = [&](const char* what, int64_t token, int64_t count) {
      if (token >= 0 && token < count) return;
      throw usage_error(fmt::format("pin {}: {} {}: outside the map (valid 0 to {})", a.number,
                                    what, token, count - 1));
    };
    if (a.place) check("query", a.place->query, call().rows);
    if (a.place) check("key", a.place->key, call().cols);
    state_.pins.set(a.number, a.place);
  }

  void operator()(const action::GoToPin& a) {
    check_pin_number(a.number);
    const std::optional<Pin> pin = state_.pins.at(a.number);
    if (!pin) throw usage_error(fmt::format("pin {0}: there is no pin {0}", a.number));
    const MapRect& now = state_.rect;
    const Pin at = a.stands_at.value_or(*pin);
    const double queries = static_cast<double>(at.query) + 0.5 - (now.q0 + now.q1) / 2;
    const double keys = static_cast<double>(at.key) + 0.5 - (now.k0 + now.k1) / 2;
    (*this)(action::Pan{queries, keys});
    state_.query = ChosenQuery{{state_.reverse ? pin->key : pin->query}};
  }

  void operator()(const action::Scrub& a) { (*this)(action::SelectHead{a.head}); }

  void operator()(const action::SetSplit& a) {
    if (!std::isfinite(a.share)) {
      throw usage_error("a split needs a share of the window between 0 and 1");
    }
    state_.split_query = std::clamp(a.share, kLeastShare, 1 - kLeastShare);
  }

  void operator()(const action::SetWords& a) {
    WordsLook look = a.look;
    std::sort(look.chosen.begin(), look.chosen.end());
    look.chosen.erase(std::unique(look.chosen.begin(), look.chosen.end()), look.chosen.end());
    if (!look.chosen.empty() && (look.chosen.front() < 0 || look.chosen.back() >= call().text)) {
      throw usage_error(call().text == 0 ? std::string("word: the head has no text")
                                         : fmt::format("word {}: outside the text (valid 0 to {})",
                                                       look.chosen.front() < 0 ? look.chosen.front()
                                                                               : look.chosen.back(),
                                                       call().text - 1));
    }
    state_.words = std::move(look);
    if (!state_.words.shown && state_.maximised == ViewPane::words) state_.maximised.reset();
  }

  void operator()(const action::SetFilm& a) {
    if (!(a.look.opacity > 0) || a.look.opacity > 1) {
      throw usage_error(
          fmt::format("film opacity {}: expected a number above 0, at most 1", a.look.opacity));
    }
    if (a.look.rate < 0 || a.look.rate > kMostFilmRate) {
      throw usage_error(fmt::format("film rate {}: expected 1 to {} moments a second, or auto",
                                    a.look.rate, kMostFilmRate));
    }
    check_moment(a.look.moment);
    state_.film = a.look;
  }

  void operator()(const action::SetMask& a) {
    check_mask_look(a.look);
    if (!a.look.text.empty() && !limits_.computed) {
      throw usage_error("mask " + one_line(a.look.text) +
                        ": of an export nothing is computed; open the capture that it is of");
    }
    if (a.of_this_head) check_mask_of_head(a.look);
    state_.mask = a.look;
    if (a.look.shown) take_place_below(ViewPane::mask);
    if (!a.look.shown && state_.maximised == ViewPane::mask) state_.maximised.reset();
  }

  void operator()(const action::SetMoment& a) {
    check_moment(a.moment);
    state_.film.moment = a.moment;
  }

  void operator()(const action::SetOther& a) {
    if (const std::string problem = other_problem(a.head); !problem.empty()) {
      throw usage_error("side B: " + problem);
    }
    if (!state_.other) state_.other = OtherSide{.head = a.head, .rect = state_.rect};
    state_.other->head = a.head;
  }

  void operator()(const action::DropOther&) { forget_other(); }

  void operator()(const action::SetDifference& a) {
    if (a.how == Difference::off && !state_.other) return;
    OtherSide& other = other_side();
    if (a.how != Difference::off) {
      check_entries("difference " + std::string(difference_name(a.how)));
    }
    if (!difference_suits(a.how, quantity())) {
      throw usage_error("difference logratio: logits have no ratio; take product weights");
    }
    if (other.difference == a.how) return;
    other.difference = a.how;
    other.range = {};
    if (a.how != Difference::off) other.split.reset();
  }

  void operator()(const action::SetSplitLine& a) {
    if (!a.share && !state_.other) return;
    if (a.share && !std::isfinite(*a.share)) {
      throw usage_error("a split line needs a share of the map's width between 0 and 1");
    }
    OtherSide& other = other_side();
    other.split.reset();
    if (!a.share) return;
    other.split = std::clamp(*a.share, 0.0f, 1.0f);
    other.difference = Difference::off;
    other.range = {};
  }

  void operator()(const action::SetLock& a) {
    OtherSide& other = other_side();
    if (a.lock == action::Lock::range) other.lock_range = a.on;
    if (a.lock == action::Lock::cursor) other.lock_cursor = a.on;
    if (a.lock != action::Lock::zoom) return;
    // Released, B begins with what it showed.
    if (other.lock_zoom) other.rect = state_.rect;
    other.lock_zoom = a.on;
  }

  void operator()(const action::SetOtherRect& a) {
    OtherSide& other = other_side();
    if (other.lock_zoom) return show(a.rect);
    other.rect = clamped_rect(a.rect, call().rows, call().cols);
  }

  void operator()(const action::ShowRanked& a) {
    if (!a.on && !state_.other) return;
    OtherSide& other = other_side();
    if (a.on) check_ranked();
    other.ranked = a.on;
    if (a.on) take_place_below(ViewPane::ranked);
    if (!a.on && state_.maximised == ViewPane::ranked) state_.maximised.reset();
  }

 private:
  static void check_moment(int64_t moment) {
    if (moment >= 0) return;
    throw usage_error(fmt::format("film frame {}: expected a number from 0 on", moment));
  }
  /// Of a mask only what changes is looked at: it may have come from another head.
  void check_mask_of_head(const MaskLook& look) const {
    const bool edited = look.edits.size() > state_.mask.edits.size();
    const bool changed = edited || look.text != state_.mask.text;
    if (changed && !look.text.empty() && !call().weights) {
      throw usage_error("mask " + one_line(look.text) +
                        ": weights of either sign have no share that a mask keeps");
    }
    if (edited) check_edit(look.edits.back());
  }
  void check_edit(const MaskEdit& edit) const {
    if (edit.q1 <= call().rows && edit.k1 <= call().cols) return;
    throw usage_error(fmt::format("mask: queries {}:{}, keys {}:{} lie beyond the map ({} x {})",
                                  edit.q0, edit.q1, edit.k0, edit.k1, call().rows, call().cols));
  }
  const CallLimits& call() const { return limits_.of_call(state_.head); }
  Quantity quantity() const {
    return state_.product == ViewProduct::logits ? Quantity::logits : Quantity::weights;
  }

  /// Of two blocks of entries, the largest numbers do not tell the largest difference.
  void check_entries(const std::string& wish) const {
    const bool both = call().entries && limits_.of_call(state_.other->head).entries;
    if (both) return;
    throw usage_error(wish +
                      ": blocks of an export are not subtracted; open the capture that it is of, "
                      "or an export of its entries");
  }
  void check_ranked() const {
    check_entries("b ranked on");
    if (call().weights && limits_.of_call(state_.other->head).weights) return;
    throw usage_error("b ranked on: rows are compared by their weights, of which there are none");
  }

  static void check_pin_number(int64_t number) {
    if (number >= 1 && number <= kPins) return;
    throw usage_error(fmt::format("pin {}: pins have numbers from 1 to {}", number, kPins));
  }

  void check_tracks(const std::string& wish) const {
    if (limits_.computed) return;
    throw usage_error(wish +
                      ": an export has no sums of its rows and keys; open the capture that it is "
                      "of");
  }

  void take_order(const MapOrder& wanted) {
    if (wanted == state_.order) return;
    if (const std::string problem = map_order_problem(wanted); !problem.empty()) {
      throw usage_error(problem);
    }
    state_.other_order = state_.order;
    state_.order = wanted;
  }

  /// Why the map cannot be seen in these orders; empty: it can.
  std::string map_order_problem(const MapOrder& order) const {
    if (order.is_stored()) return "";
    if (!limits_.computed) {
      return "order: maps of an export stand in the order in which they were written; open the "
             "capture that it is of";
    }
    if (call().evicted) {
      return "order: keys that a cache had dropped are shown in the order of the stream alone";
    }
    const std::string rows = order_problem(order.rows, call().query_side);
    return rows.empty() ? order_problem(order.keys, call().key_side) : rows;
  }

  void forget_other() {
    state_.other.reset();
    if (state_.maximised == ViewPane::ranked) state_.maximised.reset();
  }

  OtherSide& other_side() {
    if (!state_.other) throw usage_error("there is no side B to compare with");
    return *state_.other;
  }

  /// Why this head cannot be side B; empty: it can.
  std::string other_problem(const HeadId& head) const {
    if (!limits_.has(head)) {
      return fmt::format("no such head: call {}, batch item {}, head {}", head.call, head.batch,
                         head.head);
    }
    const CallLimits& a = call();
    const CallLimits& b = limits_.of_call(head);
    if (a.rows != b.rows || a.cols != b.cols) {
      return fmt::format(
          "maps of different sizes cannot be compared (A has {} queries and {} keys, B {} and {})",
          a.rows, a.cols, b.rows, b.cols);
    }
    const bool logits = quantity() == Quantity::logits;
    if (logits ? !b.logits : !b.weights) {
      return fmt::format("there are no {} of it", logits ? "logits" : "weights");
    }
    const bool ranked = state_.other && state_.other->ranked;
    const bool subtracted = ranked || (state_.other && state_.other->difference != Difference::off);
    if (subtracted && !(a.entries && b.entries)) return "blocks of an export are not subtracted";
    if (ranked && !(a.weights && b.weights)) return "rows are ranked by weights alone";
    return "";
  }

  void take_product_of_other(ViewProduct product) {
    const CallLimits& b = limits_.of_call(state_.other->head);
    const bool logits = product == ViewProduct::logits;
    if (logits ? !b.logits : !b.weights) {
      throw usage_error(fmt::format("product {}: there are no {} of side B", product_name(product),
                                    logits ? "logits" : "weights"));
    }
    state_.other->range = {};
    if (logits && state_.other->difference == Difference::log_ratio) {
      state_.other->difference = Difference::signed_difference;
    }
  }

  /// Of the panes that stand below the query in one place, hides the others. The histogram stands
  /// behind them.
  void take_place_below(ViewPane pane) {
    const auto hide = [&](ViewPane other, bool& shown) {
      if (other == pane) return;
      shown = false;
      if (state_.maximised == other) state_.maximised.reset();
    };
    hide(ViewPane::frames, state_.show_frames);
    hide(ViewPane::mask, state_.mask.shown);
    if (state_.other) hide(ViewPane::ranked, state_.other->ranked);
  }

  void show(const MapRect& rect) { state_.rect = clamped_rect(rect, call().rows, call().cols); }

  ViewState state_;
  const ViewLimits& limits_;
};

}  // namespace

ViewState apply_action(const ViewState& state, const Action& action, const ViewLimits& limits) {
  Applier applier(state, limits);
  std::visit(applier, action);
  return applier.take();
}

}  // namespace attnscope
