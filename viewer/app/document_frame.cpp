#include "viewer/app/document_frame.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/products/differences/map_difference.h"
#include "core/products/tokens/middle_token.h"
#include "viewer/view/comparison.h"
#include "viewer/view/query_walk.h"
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
  const bool other = mouse_ != point || mouse_on_other_ != on_other;
  if (other) walked_.reset();
  mouse_ = point;
  mouse_on_other_ = on_other;
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
  choose_entry();
  const ViewState& state = shown_;
  const MapSource& call = document_.call_of(state.head);
  wishes_.clear();
  Wishes exact;
  const auto ask_for = [&](const auto& wanted) {
    if (wanted) wishes_.push_back({*wanted});
  };
  ask_for(line_wanted_);
  ask_for(other_line_wanted_);
  ask_for(words_line_wanted_ = words_line(state, call, pointed_));
  masses_wanted_.reset();
  if (document_.tiles->offers(MassRequest{})) masses_wanted_ = words_masses(state, call);
  ask_for(masses_wanted_);
  other_shown_.reset();
  if (state.other && state.other->split) other_shown_ = seen_as_other(state);
  ask_for_magnified();
  ask_for_tiles(pane, exact);
  ask_for(mask_wanted_ = wanted_mask());
  for (const FrameRequest& picture : pictures_) wishes_.push_back({picture});
  tracks_wanted_.reset();
  const bool can_have_tracks = call.weights && document_.tiles->offers(TracksRequest{});
  if ((state.tracks.any() || state.show_frames) && can_have_tracks) tracks_wanted_ = {state.head};
  ask_for(tracks_wanted_);
  const std::vector<HeadId> atlas = wanted_atlas(seen_heads);
  ask_for_sketches(atlas);
  if (state.other && state.other->ranked) {
    const HeadsCompared compared{state.head, state.other->head};
    wishes_.push_back({compared});
    exact.push_back({compared, Stage::exact});
  }
  if (tracks_wanted_) exact.push_back({*tracks_wanted_, Stage::exact});
  if (state.atlas.exact) {
    for (const HeadId& id : atlas) exact.push_back({SketchRequest{id}, Stage::exact});
  }
  wishes_.insert(wishes_.end(), exact.begin(), exact.end());
  wish();
}

/// Wishes for what is seen of the map, and of side B right of a split line; the passes are wished
/// for exactly.
void DocumentFrame::ask_for_tiles(PaneSize pane, Wishes& exact) {
  tiles_ = wanted_tiles(shown_, geometry(), pane);
  exact.push_back({tile_of(shown_, geometry().top_level, 0, 0), Stage::exact});
  if (other_shown_) {
    const auto tiles = wanted_tiles(*other_shown_, geometry(), pane);
    tiles_.insert(tiles_.end(), tiles.begin(), tiles.end());
    exact.push_back({tile_of(*other_shown_, geometry().top_level, 0, 0), Stage::exact});
  }
  for (const TileId& id : tiles_) wishes_.push_back({id});
}

/// Where the mouse is on B's half, B is magnified.
const ViewState& DocumentFrame::magnified_state() const {
  return hovered_on_other_ && other_shown_ ? *other_shown_ : shown_;
}

/// Single entries around the one that is read, where the map is seen on a coarser level; as long as
/// the mouse is where entries are.
void DocumentFrame::ask_for_magnified() {
  magnified_at_.reset();
  const MapGeometry sizes = geometry();
  const bool there = hovered_ && hovered_->query < sizes.rows && hovered_->key < sizes.cols;
  if (!shown_.magnifier || !there || !is_on_map()) return;
  const PlacedMap placed = document_.placed(shown_);
  magnified_at_ = {placed.rows->place(hovered_->query), placed.keys->place(hovered_->key)};
  const ViewState& state = magnified_state();
  for (const TileId& id :
       magnified_tiles(state, sizes, magnified_at_->first, magnified_at_->second)) {
    wishes_.push_back({id});
  }
}

std::optional<Magnified> DocumentFrame::magnified() const {
  if (!magnified_at_) return std::nullopt;
  Magnified seen = attnscope::magnified(magnified_state(), geometry(), *document_.tiles,
                                        magnified_at_->first, magnified_at_->second);
  seen.of_other = &magnified_state() != &shown_;
  return seen;
}

/// Of the head that is shown; nothing where it can have none.
std::optional<MaskRequest> DocumentFrame::wanted_mask() const {
  const MaskLook& look = shown_.mask;
  if (look.text.empty() || !document_.tiles->offers(MaskRequest{})) return std::nullopt;
  if (!document_.call_of(shown_.head).weights) return std::nullopt;
  return MaskRequest{shown_.map_head(), look.text, look.block, look.edits, look.lost};
}

std::shared_ptr<const HeadMask> DocumentFrame::found_mask() const {
  return mask_wanted_ ? find(*document_.tiles, *mask_wanted_) : nullptr;
}

bool DocumentFrame::has_mask() const {
  return !mask_wanted_ || (mask_ && (mask_->all_rows || !mask_->problem.empty()));
}

/// Every head of the atlas whose sketch is wanted, those that are seen first.
std::vector<HeadId> DocumentFrame::wanted_atlas(std::span<const HeadId> seen) {
  atlas_.reset();
  if (!shown_.atlas.shown) return {};
  const std::vector<AtlasLine> lines = atlas_lines(document_.own(), own_head());
  atlas_ = AtlasCells::of(lines, shown_.atlas, [&](const HeadId& id) { return found_sketch(id); });
  const MapSource& call = document_.call_of(own_head());
  if (!document_.tiles->offers(SketchRequest{}) || !call.weights) return {};
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
  return heads;
}

/// Sketches of the atlas, and after them those of a curve.
void DocumentFrame::ask_for_sketches(const std::vector<HeadId>& atlas) {
  for (const HeadId& id : atlas) wishes_.push_back({SketchRequest{id}});
  const std::pair of(own_head(), document_.calls.size());
  if (timeline_of_ != of) {
    timeline_ = Timeline::of(document_.own(), own_head());
    timeline_of_ = of;
  }
  curve_.reset();
  const TimelineLook& look = shown_.timeline;
  if (!look.shown || look.metric.empty()) return;
  curve_ = HeadCurve::of(document_.own(), timeline_, own_head(), look,
                         [&](const HeadId& id) { return found_sketch(id); });
  if (!document_.tiles->offers(SketchRequest{})) return;
  const std::set<HeadId> named(atlas.begin(), atlas.end());
  for (const HeadId& id : curve_->wanted()) {
    if (!named.contains(id)) wishes_.push_back({SketchRequest{id}});
  }
}

/// Tells the source of the wishes, and of entries before them, where that is news to it.
void DocumentFrame::wish() {
  Wishes all;
  all.reserve(wishes_.size() + 3);
  for (const auto& probe : {hovered_probe(), hovered_probe(true), script_probe_}) {
    if (probe) all.push_back({*probe});
  }
  all.insert(all.end(), wishes_.begin(), wishes_.end());
  if (all == told_) return;
  told_ = all;
  document_.tiles->want(std::move(all));
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

/// An entry of the line that is wanted, which is of one token.
MapPoint DocumentFrame::point_on_line(int64_t place) const {
  const int64_t token = line_wanted_->tokens.front();
  return line_wanted_->reverse ? MapPoint{place, token} : MapPoint{token, place};
}

/// The entry that is read: where the mouse is, or in the line that is wanted.
void DocumentFrame::choose_entry() {
  hovered_ = mouse_;
  hovered_on_other_ = mouse_on_other_;
  const bool single = line_wanted_ && line_wanted_->tokens.size() == 1;
  if (!walked_ || !single) return;
  hovered_ = point_on_line(*walked_);
  hovered_on_other_ = false;
}

MapPoint DocumentFrame::walk(bool larger) {
  if (!has_line()) throw usage_error("the row is not there yet");
  if (line_->request.tokens.size() != 1) {
    throw usage_error("what is shown is the mean of several rows: pick one token");
  }
  // Of another head's line the place may be none.
  if (walked_ >= std::ssize(line_->values)) walked_.reset();
  const auto next = next_by_value(*line_, walked_, larger);
  if (!next) throw usage_error(larger ? "no entry is larger" : "no entry is smaller");
  walked_ = next;
  return point_on_line(*next);
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
  auto a = find(*document_.tiles, *line_wanted_);
  if (!a || !other_line_wanted_) return a;
  const auto b = find(*document_.tiles, *other_line_wanted_);
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
    line_of_a_ = find(*document_.tiles, request);
    line_of_b_ = other_line_wanted_ ? find(*document_.tiles, *other_line_wanted_) : nullptr;
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
  if (words_line_wanted_) {
    key.line = find(*document_.tiles, *words_line_wanted_);
    words_line_is_wanted_ = key.line != nullptr;
    const auto& before = words_key_.line;
    const bool related =
        before && before->request.head == shown_.head && before->request.reverse == shown_.reverse;
    if (!key.line && related) key.line = before;
  }
  if (masses_wanted_) key.masses = find(*document_.tiles, *masses_wanted_);
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
  if (auto found = found_entry(*probe)) readout_->entry = found;
  readout_->other.reset();
  if (of_other && !on_other) readout_->other = found_entry(*of_other);
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
    if (auto tile = find(*document_.tiles, id)) key.tiles.push_back(std::move(tile));
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
    if (auto tile = find(*document_.tiles, top)) key.tiles.push_back(std::move(tile));
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

std::optional<HeadsCompared> DocumentFrame::compared() const {
  if (!shown_.other || !shown_.other->ranked) return std::nullopt;
  return HeadsCompared{shown_.head, shown_.other->head};
}

std::shared_ptr<const RowDivergence> DocumentFrame::divergence() const {
  const auto heads = compared();
  return heads ? find(*document_.tiles, *heads) : nullptr;
}

std::shared_ptr<const HeadTracks> DocumentFrame::tracks() const {
  return tracks_wanted_ ? find(*document_.tiles, *tracks_wanted_) : nullptr;
}

bool DocumentFrame::are_tracks_exact() const {
  if (!wants_tracks()) return true;
  const auto found = tracks();
  return found && found->exact;
}

bool DocumentFrame::has_news() const {
  const TileSource& tiles = *document_.tiles;
  if (mask_ != found_mask()) return true;
  if (!has_entry() && find(tiles, *readout_of_)) return true;
  if (!has_words_line() && find(tiles, *words_line_wanted_)) return true;
  if (!has_masses() && find(tiles, *masses_wanted_)) return true;
  return line_pending() && find(tiles, *line_wanted_) != nullptr;
}

/// Why the first of these that has a problem will not come; empty: none has.
std::string DocumentFrame::any_problem(std::initializer_list<std::optional<Ask>> asks) const {
  for (const std::optional<Ask>& ask : asks) {
    std::string problem = ask ? document_.tiles->problem(*ask) : "";
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string DocumentFrame::tiles_problem() const {
  for (const TileId& id : tiles_) {
    std::string problem = document_.tiles->problem(id);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::shared_ptr<const HeadSketch> DocumentFrame::found_sketch(const HeadId& id) const {
  return find(*document_.tiles, SketchRequest{id});
}

std::optional<ProbedEntry> DocumentFrame::found_entry(const ProbeRequest& request) const {
  const auto entry = find(*document_.tiles, request);
  return entry ? std::optional(*entry) : std::nullopt;
}

std::optional<ProbedEntry> DocumentFrame::probe(int64_t query, int64_t key) {
  return probe_of(document_.shows_other ? own_head() : shown_.head, query, key);
}

std::optional<ProbedEntry> DocumentFrame::probe_other(int64_t query, int64_t key) {
  return probe_of(document_.history.now().other->head, query, key);
}

std::optional<ProbedEntry> DocumentFrame::probe_of(const HeadId& head, int64_t query, int64_t key) {
  const ProbeRequest wanted{head, query, key};
  if (const auto known = found_entry(wanted)) return known;
  script_probe_ = wanted;
  wish();
  // Before the entry is looked for: a source that has nothing more to do has found it, or failed.
  const TileSourceStatus status = document_.tiles->status();
  const auto found = found_entry(*script_probe_);
  if (!found && !status.busy) throw Error(ErrorCode::file, status.problem);
  if (found) script_probe_.reset();
  return found;
}

}  // namespace attnscope
