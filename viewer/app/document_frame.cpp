#include "viewer/app/document_frame.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The token whose line is shown before anything was pointed at: one in the middle of the video,
/// or of what is there.
int64_t first_followed(const TokenGrid& grid, IndexRange there) {
  if (grid.has_grid()) {
    const int64_t middle = grid.index_of({grid.frames() / 2, grid.height() / 2, grid.width() / 2});
    if (there.contains(middle)) return middle;
  }
  const IndexRange video = intersect(grid.video_range(), there);
  const IndexRange all = video.empty() ? there : video;
  return all.begin + all.size() / 2;
}

}  // namespace

DocumentFrame::DocumentFrame(Document& document, std::function<void()> wake)
    : document_(document), wake_(std::move(wake)), shown_(document.shown()) {}

MapGeometry DocumentFrame::geometry() const { return document_.tiles->geometry(shown_.head); }

bool DocumentFrame::hover(const std::optional<MapPoint>& point) {
  const bool other = hovered_ != point;
  hovered_ = point;
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
  wishes.tiles = wanted_tiles(state, geometry(), pane);
  wishes.exact = {state.head};
  ask_for_atlas(seen_heads, wishes);
  ask_for_words(wishes);
  wishes.frames = pictures_;
  wish(std::move(wishes));
}

void DocumentFrame::ask_for_words(WantedTiles& wishes) const {
  wishes.words_line = words_line(shown_, document_.call(), pointed_);
  if (document_.tiles->has_masses()) wishes.masses = words_masses(shown_, document_.call());
}

/// Every head of the atlas, those that are seen first.
void DocumentFrame::ask_for_atlas(std::span<const HeadId> seen, WantedTiles& wishes) {
  atlas_.reset();
  if (!shown_.atlas.shown) return;
  const std::vector<AtlasLine> lines = atlas_lines(document_.calls, shown_.head);
  atlas_ = AtlasCells::of(lines, shown_.atlas,
                          [&](const HeadId& id) { return document_.tiles->find_sketch(id); });
  if (!document_.tiles->has_sketches()) return;
  std::vector<HeadId> heads(seen.begin(), seen.end());
  std::set<HeadId> named(seen.begin(), seen.end());
  for (const AtlasLine& line : lines) {
    for (const AtlasHead& head : line.heads) {
      if (named.insert(head.id).second) heads.push_back(head.id);
    }
  }
  if (shown_.atlas.exact) wishes.exact_sketches = heads;
  wishes.sketches = std::move(heads);
}

/// Tells the source, where that is news to it.
void DocumentFrame::wish(WantedTiles wishes) {
  wishes.probes.clear();
  for (const auto& probe : {hovered_probe(), script_probe_}) {
    if (probe) wishes.probes.push_back(*probe);
  }
  if (wishes == wishes_) return;
  wishes_ = wishes;
  document_.tiles->want(std::move(wishes));
}

void DocumentFrame::choose_line() {
  const ViewState& state = shown_;
  const MapSource& call = document_.call();
  const TokenGrid& side = state.reverse ? call.keys : call.queries;
  if (!followed_ || *followed_ >= side.tokens()) {
    followed_ = first_followed(side, state.reverse ? call.cols : call.rows);
    if (call.first_row >= 0 && !state.reverse) followed_ = call.first_row;
  }
  std::optional<LineRequest> wanted = film_line(state, call, followed_);
  if (call.block > 1) wanted.reset();
  if (wanted == line_wanted_) return;
  line_wanted_ = wanted;
  asked_at_ = now_;
}

void DocumentFrame::take(PaneSize pane, bool moved) {
  take_line();
  take_words();
  take_entry();
  take_histogram(pane, moved);
}

void DocumentFrame::take_line() {
  if (!line_wanted_) {
    line_.reset();
    return;
  }
  const LineRequest& request = *line_wanted_;
  if (auto found = document_.tiles->find_line(request)) {
    if (found != line_) line_ms_ = now_ - asked_at_;
    line_ = std::move(found);
  } else if (line_) {
    // An older line stays until the new one is there, unless it belongs to something else.
    const LineRequest& shown = line_->request;
    const bool related = shown.head == request.head && shown.quantity == request.quantity &&
                         shown.reverse == request.reverse && shown.sum == request.sum;
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
  words_ = words_view(shown_, document_.call(), words_key_.line.get(), words_key_.masses.get());
}

/// The entry under the mouse.
std::optional<ProbeRequest> DocumentFrame::hovered_probe() const {
  if (!hovered_) return std::nullopt;
  const MapGeometry sizes = geometry();
  if (hovered_->query >= sizes.rows || hovered_->key >= sizes.cols) return std::nullopt;
  return ProbeRequest{shown_.head, hovered_->query, hovered_->key};
}

void DocumentFrame::take_entry() {
  const std::optional<ProbeRequest> probe = hovered_probe();
  if (!probe) {
    readout_.reset();
    return;
  }
  if (!readout_ || probe != readout_of_) readout_ = PointReadout{*hovered_, {}, {}};
  readout_of_ = probe;
  if (auto found = document_.tiles->find_probe(*probe)) readout_->entry = found;
  const bool own_row = line_ && !line_->request.reverse && line_->request.tokens.size() == 1 &&
                       line_->request.tokens.front() == hovered_->query;
  readout_->rank.reset();
  if (!own_row) return;
  const float value = line_->values[static_cast<size_t>(hovered_->key)];
  readout_->rank = 1 + std::count_if(line_->values.begin(), line_->values.end(),
                                     [&](float other) { return other > value; });
}

DocumentFrame::HistogramKey DocumentFrame::histogram_key(PaneSize pane) const {
  const ViewState& state = shown_;
  const MapGeometry sizes = geometry();
  HistogramKey key;
  key.rect = state.rect;
  key.pool = state.pool;
  key.quantity = product_quantity(state.product);
  for (const TileId& id : seen_tiles(state, sizes, view_level(state.rect, sizes, pane))) {
    if (auto tile = document_.tiles->find(id)) key.tiles.push_back(std::move(tile));
  }
  if (key.tiles.empty()) {
    const TileId top{state.head, key.quantity, sizes.top_level, 0, 0};
    if (auto tile = document_.tiles->find(top)) key.tiles.push_back(std::move(tile));
  }
  return key;
}

/// Counts the values that are seen again where they have changed; not while the map is moved, so
/// that colours do not flicker.
void DocumentFrame::take_histogram(PaneSize pane, bool moved) {
  if (pane.width <= 0) return;
  HistogramKey key = histogram_key(pane);
  if (counting_.valid() &&
      counting_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    histogram_ = counting_.get();
    histogram_key_ = std::move(counting_key_);
  }
  histogram_stale_ = !(key == histogram_key_);
  if (!histogram_stale_ || counting_.valid() || moved) return;
  // The first tiles are counted at once, so that the first picture has its colours.
  if (histogram_.empty() && key.tiles.size() <= 2) {
    histogram_ = ValueHistogram::of(key.tiles, key.rect, key.pool);
    histogram_key_ = std::move(key);
    histogram_stale_ = false;
    return;
  }
  counting_key_ = key;
  counting_ = std::async(std::launch::async, [key = std::move(key), wake = wake_] {
    ValueHistogram counted = ValueHistogram::of(key.tiles, key.rect, key.pool);
    wake();
    return counted;
  });
}

bool DocumentFrame::has_news() const {
  if (!has_entry() && document_.tiles->find_probe(*readout_of_)) return true;
  if (!has_words_line() && document_.tiles->find_line(*wishes_.words_line)) return true;
  if (!has_masses() && document_.tiles->find_masses(*wishes_.masses)) return true;
  return line_pending() && document_.tiles->find_line(*line_wanted_) != nullptr;
}

std::optional<ProbedEntry> DocumentFrame::probe(int64_t query, int64_t key) {
  script_probe_ = ProbeRequest{shown_.head, query, key};
  wish(wishes_);
  // Before the entry is looked for: a source that has nothing more to do has found it, or failed.
  const TileSourceStatus status = document_.tiles->status();
  const auto found = document_.tiles->find_probe(*script_probe_);
  if (!found && !status.busy) throw Error(ErrorCode::file, status.problem);
  if (found) script_probe_.reset();
  return found;
}

}  // namespace attnscope
