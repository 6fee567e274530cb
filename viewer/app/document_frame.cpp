#include "viewer/app/document_frame.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/products/differences/map_difference.h"
#include "core/products/tokens/middle_token.h"
#include "viewer/view/comparison.h"
#include "viewer/view/value_range.h"

namespace attnscope {
DocumentFrame::DocumentFrame(Document& document, std::function<void()> wake)
    : document_(document),
      wake_(std::move(wake)),
      shown_(document.shown()),
      timeline_(Timeline::of(document.own(), own_head())),
      timeline_of_(own_head(), document.calls.size()) {}

MapGeometry DocumentFrame::geometry() const { return document_.tiles->geometry(shown_.head); }

bool DocumentFrame::hover(const std::optional<MapPoint>& point, bool on_other) {
  const bool other = hovered_ != point || hovered_on_other_ != on_other;
  hovered_ = point;
  hovered_on_other_ = on_other;
  return other;
}

bool DocumentFrame::follow(int64_t token) {
  const bool other = followed_ != token;
  followed_ = token;
  return other;
}

bool DocumentFrame::point(const std::optional<int64_t>& token) {
  const bool other = pointed_ != token;
  pointed_ = token;
  return other;
}

bool DocumentFrame::want_pictures(std::vector<FrameRequest> pictures) {
  const bool other = pictures_ != pictures;
  pictures_ = std::move(pictures);
  return other;
}

void DocumentFrame::ask(PaneSize pane, std::span<const HeadId> seen_heads, double now) {
  now_ = now;
  shown_ = document_.shown();
  choose_line();
  const ViewState& state = shown_;
  WantedTiles wishes;
  wishes.line = line_wanted_;
  wishes.other_line = other_line_wanted_;
  wishes.tiles = wanted_tiles(state, geometry(), pane);
  if (const std::optional<Against> against = state.against()) {
    wishes.exact_differences = {{state.map_head(), product_quantity(state.product), *against}};
  } else {
    wishes.exact = {state.map_head()};
  }
  other_shown_.reset();
  if (state.other && state.other->split) {
    other_shown_ = seen_as_other(state);
    const auto tiles = wanted_tiles(*other_shown_, geometry(), pane);
    wishes.tiles.insert(wishes.tiles.end(), tiles.begin(), tiles.end());
    wishes.exact.push_back(other_shown_->map_head());
  }
  if (state.other && state.other->ranked) {
    wishes.divergence = HeadsCompared{state.head, state.other->head};
  }
  const bool has_tracks = document_.tiles->has_tracks() && document_.call_of(state.head).weights;
  if ((state.tracks.any() || state.show_frames) && has_tracks) wishes.tracks = state.head;
  ask_for_atlas(seen_heads, wishes);
  ask_for_curve(wishes);
  ask_for_words(wishes);
  wishes.frames = pictures_;
  wishes.mask = wanted_mask();
  wish(std::move(wishes));
}

/// Of the head that is shown; nothing where it can have none.
std::optional<MaskRequest> DocumentFrame::wanted_mask() const {
  const MaskLook& look = shown_.mask;
  if (look.text.empty() || !document_.tiles->has_masks()) return std::nullopt;
  if (!document_.call_of(shown_.head).weights) return std::nullopt;
  return MaskRequest{shown_.map_head(), look.text, look.block, look.edits, look.lost};
}

std::shared_ptr<const HeadMask> DocumentFrame::found_mask() const {
  return wishes_.mask ? document_.tiles->find_mask(*wishes_.mask) : nullptr;
}

bool DocumentFrame::has_mask() const {
  return !wishes_.mask || (mask_ && (mask_->all_rows || !mask_->problem.empty()));
}

void DocumentFrame::ask_for_words(WantedTiles& wishes) const {
  wishes.words_line = words_line(shown_, document_.call_of(shown_.head), pointed_);
  if (document_.tiles->has_masses())
    wishes.masses = words_masses(shown_, document_.call_of(shown_.head));
}

/// Every head of the atlas, those that are seen first.
void DocumentFrame::ask_for_atlas(std::span<const HeadId> seen, WantedTiles& wishes) {
  atlas_.reset();
  if (!shown_.atlas.shown) return;
  const std::vector<AtlasLine> lines = atlas_lines(document_.own(), own_head());
  atlas_ = AtlasCells::of(lines, shown_.atlas,
                          [&](const HeadId& id) { return document_.tiles->find_sketch(id); });
  const MapSource& call = document_.call_of(own_head());
  if (!document_.tiles->has_sketches() || !call.weights) return;
  std::vector<HeadId> all;
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) all.push_back(head.id);
  }
  std::vector<HeadId> there = all;
  std::sort(there.begin(), there.end());
  // Heads that were seen may be of another capture.
  std::vector<HeadId> heads;
  for (const HeadId& id : seen) {
    if (std::binary_search(there.begin(), there.end(), id)) heads.push_back(id);
  }
  std::vector<HeadId> first = heads;
  std::sort(first.begin(), first.end());
  for (const HeadId& id : all) {
    if (!std::binary_search(first.begin(), first.end(), id)) heads.push_back(id);
  }
  if (shown_.atlas.exact) wishes.exact_sketches = heads;
  wishes.sketches = std::move(heads);
}

/// The heads of a curve come after those of the atlas.
void DocumentFrame::ask_for_curve(WantedTiles& wishes) {
  const std::pair of(own_head(), document_.calls.size());
  if (timeline_of_ != of) {
    timeline_ = Timeline::of(document_.own(), own_head());
    timeline_of_ = of;
  }
  curve_.reset();
  const TimelineLook& look = shown_.timeline;
  if (!look.shown || look.metric.empty()) return;
  curve_ = HeadCurve::of(document_.own(), timeline_, own_head(), look,
                         [&](const HeadId& id) { return document_.tiles->find_sketch(id); });
  if (!document_.tiles->has_sketches()) return;
  const std::set<HeadId> named(wishes.sketches.begin(), wishes.sketches.end());
  for (const HeadId& id : curve_->wanted()) {
    if (!named.contains(id)) wishes.sketches.push_back(id);
  }
}

/// Tells the source, where that is news to it.
void DocumentFrame::wish(WantedTiles wishes) {
  wishes.probes.clear();
  for (const auto& probe : {hovered_probe(), hovered_probe(true), script_probe_}) {
    if (probe) wishes.probes.push_back(*probe);
  }
  if (wishes == wishes_) return;
  wishes_ = wishes;
  document_.tiles->want(std::move(wishes));
}

void DocumentFrame::choose_line() {
  const ViewState& state = shown_;
  const MapSource& call = document_.call_of(state.head);
  const TokenGrid& side = state.reverse ? call.keys : call.queries;
  if (!followed_ || *followed_ >= side.tokens()) {
    followed_ = middle_token(side, state.reverse ? call.cols : call.rows);
    if (call.first_row >= 0 && !state.reverse) followed_ = call.first_row;
  }
  std::optional<LineRequest> wanted = film_line(state, call, followed_);
  if (call.block > 1) wanted.reset();
  std::optional<LineRequest> of_other;
  if (wanted && state.against()) {
    of_other = wanted;
    of_other->head = state.other->head;
  }
  if (wanted == line_wanted_ && of_other == other_line_wanted_) return;
  line_wanted_ = wanted;
  other_line_wanted_ = of_other;
  asked_at_ = now_;
}

namespace {

/// The difference of two lines, taken as that of the map's entries.
std::shared_ptr<const MapLine> line_difference(const MapLine& a, const MapLine& b, Difference how) {
  auto line = std::make_shared<MapLine>();
  line->request = a.request;
  line->values.resize(a.values.size());
  take_difference(how, a.values, b.values, line->values);
  if (a.masked.empty() || b.masked.empty()) return line;
  line->masked.resize(a.masked.size());
  std::transform(a.masked.begin(), a.masked.end(), b.masked.begin(), line->masked.begin(),
                 [](uint8_t x, uint8_t y) { return std::min(x, y); });
  return line;
}

}  // namespace

/// The wanted line, or the difference of the two that are wanted; null while there is none.
std::shared_ptr<const MapLine> DocumentFrame::found_line() const {
  auto a = document_.tiles->find_line(*line_wanted_);
  if (!a || !other_line_wanted_) return a;
  const auto b = document_.tiles->find_line(*other_line_wanted_);
  if (!b) return nullptr;
  if (a == line_of_a_ && b == line_of_b_ && line_against_ == shown_.against()) return line_;
  return line_difference(*a, *b, shown_.against()->how);
}

void DocumentFrame::take(PaneSize pane, bool moved) {
  take_line();
  take_words();
  mask_ = found_mask();
  take_entry();
  take_histogram(pane, moved);
}

void DocumentFrame::take_line() {
  if (!line_wanted_) {
    line_.reset();
    return;
  }
  const LineRequest& request = *line_wanted_;
  if (auto found = found_line()) {
    if (found != line_) line_ms_ = now_ - asked_at_;
    line_ = std::move(found);
    line_against_ = shown_.against();
    line_of_a_ = document_.tiles->find_line(request);
    line_of_b_ = other_line_wanted_ ? document_.tiles->find_line(*other_line_wanted_) : nullptr;
  } else if (line_) {
    // An older line stays until the new one is there, unless it belongs to something else.
    const LineRequest& shown = line_->request;
    const bool related = shown.head == request.head && shown.quantity == request.quantity &&
                         shown.reverse == request.reverse && shown.sum == request.sum &&
                         line_against_ == shown_.against();
    if (!related) line_.reset();
  }
}

/// The list is made anew where something of it has changed. An older row of the same head stays
/// until the new one is there.
void DocumentFrame::take_words() {
  if (!shown_.words.shown && shown_.words.chosen.empty()) {
    words_.reset();
    words_key_ = {};
    return;
  }
  WordsKey key{shown_.head, shown_.reverse, shown_.words, nullptr, nullptr};
  words_line_is_wanted_ = false;
  if (wishes_.words_line) {
    key.line = document_.tiles->find_line(*wishes_.words_line);
    words_line_is_wanted_ = key.line != nullptr;
    const auto& before = words_key_.line;
    const bool related =
        before && before->request.head == shown_.head && before->request.reverse == shown_.reverse;
    if (!key.line && related) key.line = before;
  }
  if (wishes_.masses) key.masses = document_.tiles->find_masses(*wishes_.masses);
  if (words_ && key == words_key_) return;
  words_key_ = std::move(key);
  words_ = words_view(shown_, document_.call_of(shown_.head), words_key_.line.get(),
                      words_key_.masses.get());
}

/// The entry under the mouse: of A, of side B where `other`. Of both where the cursor is locked,
/// else of the one that is pointed at.
std::optional<ProbeRequest> DocumentFrame::hovered_probe(bool other) const {
  if (!hovered_ || (other && !shown_.other)) return std::nullopt;
  const MapGeometry sizes = geometry();
  if (hovered_->query >= sizes.rows || hovered_->key >= sizes.cols) return std::nullopt;
  const bool one_side = shown_.other && !shown_.other->lock_cursor && !shown_.against();
  if (one_side && other != hovered_on_other_) return std::nullopt;
  return ProbeRequest{other ? shown_.other->head : shown_.head, hovered_->query, hovered_->key};
}

void DocumentFrame::take_entry() {
  const std::optional<ProbeRequest> of_other = hovered_probe(true);
  std::optional<ProbeRequest> probe = hovered_probe();
  if (!probe) probe = of_other;
  if (!probe) {
    readout_.reset();
    return;
  }
  const bool on_other = !hovered_probe() && of_other;
  if (!readout_ || probe != readout_of_) readout_ = PointReadout{*hovered_, {}, {}, {}, on_other};
  readout_of_ = probe;
  if (auto found = document_.tiles->find_probe(*probe)) readout_->entry = found;
  readout_->other.reset();
  if (of_other && !on_other) readout_->other = document_.tiles->find_probe(*of_other);
  const bool own_row = line_ && !line_against_ && !line_->request.reverse &&
                       line_->request.tokens.size() == 1 &&
                       line_->request.tokens.front() == hovered_->query;
  readout_->rank.reset();
  if (!own_row || on_other) return;
  const float value = line_->values[static_cast<size_t>(hovered_->key)];
  readout_->rank = 1 + std::count_if(line_->values.begin(), line_->values.end(),
                                     [&](float other) { return other > value; });
}

/// The part of the map that a view shows, with its tiles, for the histogram.
CountedView::Key DocumentFrame::counted_key(const ViewState& state, PaneSize pane) const {
  const MapGeometry sizes = geometry();
  CountedView::Key key;
  key.head = state.map_head();
  key.against = state.against();
  key.rect = state.rect;
  key.pool = state.pool;
  key.quantity = product_quantity(state.product);
  const auto wanted = seen_tiles(state, sizes, view_level(state.rect, sizes, pane));
  bool exact = true;
  for (const TileId& id : wanted) {
    if (auto tile = document_.tiles->find(id)) key.tiles.push_back(std::move(tile));
    exact = exact && !key.tiles.empty() && key.tiles.back()->id == id && key.tiles.back()->exact;
  }
  const bool all = key.tiles.size() == wanted.size();
  // A view that nobody works on any more has come as far as it will.
  const bool settled = exact || !document_.tiles->status().busy;
  key.stage = settled ? CountedView::Stage::settled
              : all   ? CountedView::Stage::all
                      : CountedView::Stage::some;
  if (key.tiles.empty()) {
    const TileId top = tile_of(state, sizes.top_level, 0, 0);
    if (auto tile = document_.tiles->find(top)) key.tiles.push_back(std::move(tile));
  }
  return key;
}

void DocumentFrame::take_histogram(PaneSize pane, bool moved) {
  if (pane.width <= 0) return;
  seen_.take(counted_key(shown_, pane), moved, wake_);
  if (has_own_range()) seen_other_.take(counted_key(*other_shown_, pane), moved, wake_);
}

std::optional<ColourScale> DocumentFrame::other_scale() const {
  if (!other_shown_) return std::nullopt;
  const int64_t keys = geometry().cols;
  const auto most = [&](const ViewState& of) {
    return shown_most(of, document_.call_of(of.head).score, keys);
  };
  if (!has_own_range()) return shown_scale(shown_, seen_.histogram(), keys, most(shown_));
  ViewState own = *other_shown_;
  own.range = {};
  return shown_scale(own, seen_other_.histogram(), keys, most(own));
}

std::shared_ptr<const RowDivergence> DocumentFrame::divergence() const {
  if (!shown_.other || !shown_.other->ranked) return nullptr;
  return document_.tiles->find_divergence({shown_.head, shown_.other->head});
}

std::shared_ptr<const HeadTracks> DocumentFrame::tracks() const {
  return wishes_.tracks ? document_.tiles->find_tracks(*wishes_.tracks) : nullptr;
}

bool DocumentFrame::has_tracks() const {
  if (!wants_tracks()) return true;
  const auto found = tracks();
  return found && found->exact;
}

bool DocumentFrame::has_news() const {
  if (mask_ != found_mask()) return true;
  if (!has_entry() && document_.tiles->find_probe(*readout_of_)) return true;
  if (!has_words_line() && document_.tiles->find_line(*wishes_.words_line)) return true;
  if (!has_masses() && document_.tiles->find_masses(*wishes_.masses)) return true;
  return line_pending() && document_.tiles->find_line(*line_wanted_) != nullptr;
}

std::optional<ProbedEntry> DocumentFrame::probe(int64_t query, int64_t key) {
  return probe_of(document_.shows_other ? own_head() : shown_.head, query, key);
}

std::optional<ProbedEntry> DocumentFrame::probe_other(int64_t query, int64_t key) {
  return probe_of(document_.history.now().other->head, query, key);
}

std::optional<ProbedEntry> DocumentFrame::probe_of(const HeadId& head, int64_t query, int64_t key) {
  const ProbeRequest wanted{head, query, key};
  if (const auto known = document_.tiles->find_probe(wanted)) return known;
  script_probe_ = wanted;
  wish(wishes_);
  // Before the entry is looked for: a source that has nothing more to do has found it, or failed.
  const TileSourceStatus status = document_.tiles->status();
  const auto found = document_.tiles->find_probe(*script_probe_);
  if (!found && !status.busy) throw Error(ErrorCode::file, status.problem);
  if (found) script_probe_.reset();
  return found;
}

}  // namespace attnscope
