// How the window's frame of an open capture is made: what is wished for, uploaded, and shown.
#include "viewer/app/document.h"

#include <imgui.h>

#include <algorithm>
#include <chrono>

#include "viewer/app/viewer_app.h"

namespace attnscope {
namespace {

/// What the uploads of a frame may take, so that the window follows the mouse.
constexpr double kUploadMsMoving = 4;
constexpr double kUploadMsStill = 12;

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

/// Asks for what is seen, where that has changed.
void ViewerApp::wish() {
  const ViewState& state = document_->history.now();
  const MapGeometry geometry = document_->tiles->geometry(state.head);
  WantedTiles wishes;
  wishes.line = line_wanted_;
  wishes.tiles = wanted_tiles(state, geometry, panels_.matrix().pane_size());
  wishes.exact = {state.head};
  for (const auto& probe : {hovered_probe(), script_probe_}) {
    if (probe) wishes.probes.push_back(*probe);
  }
  if (wishes == wishes_) return;
  wishes_ = wishes;
  document_->tiles->want(std::move(wishes));
}

void ViewerApp::refresh_line() {
  const ViewState& state = document_->history.now();
  const MapSource& call = document_->call();
  const TokenGrid& side = state.reverse ? call.keys : call.queries;
  if (!followed_ || *followed_ >= side.tokens()) {
    followed_ = first_followed(side, state.reverse ? call.cols : call.rows);
    if (call.first_row >= 0 && !state.reverse) followed_ = call.first_row;
  }
  std::optional<LineRequest> wanted = wanted_line(state, followed_);
  if (call.block > 1) wanted.reset();
  if (wanted != line_wanted_) {
    line_wanted_ = wanted;
    line_since_ = clock_.milliseconds();
  }
  if (!line_wanted_) {
    line_.reset();
    return;
  }
  const LineRequest& request = *line_wanted_;
  if (auto found = document_->tiles->find_line(request)) {
    if (found != line_) counters_.query_ms = clock_.milliseconds() - line_since_;
    line_ = std::move(found);
  } else if (line_) {
    // An older line stays until the new one is there, unless it belongs to something else.
    const LineRequest& shown = line_->request;
    const bool related = shown.head == request.head && shown.quantity == request.quantity &&
                         shown.reverse == request.reverse;
    if (!related) line_.reset();
  }
}

/// The entry under the mouse.
std::optional<ProbeRequest> ViewerApp::hovered_probe() const {
  if (!hovered_) return std::nullopt;
  const HeadId& head = document_->history.now().head;
  const MapGeometry geometry = document_->tiles->geometry(head);
  if (hovered_->query >= geometry.rows || hovered_->key >= geometry.cols) return std::nullopt;
  return ProbeRequest{head, hovered_->query, hovered_->key};
}

void ViewerApp::refresh_readout() {
  const std::optional<ProbeRequest> probe = hovered_probe();
  if (!probe) {
    readout_.reset();
    return;
  }
  if (!readout_ || probe != readout_of_) readout_ = PointReadout{*hovered_, {}, {}};
  readout_of_ = probe;
  if (auto found = document_->tiles->find_probe(*probe)) readout_->entry = found;
  const bool own_row = line_ && !line_->request.reverse && line_->request.tokens.size() == 1 &&
                       line_->request.tokens.front() == hovered_->query;
  readout_->rank.reset();
  if (!own_row) return;
  const float value = line_->values[static_cast<size_t>(hovered_->key)];
  readout_->rank = 1 + std::count_if(line_->values.begin(), line_->values.end(),
                                     [&](float other) { return other > value; });
}

/// Counts the values that are seen again where they have changed; not while the map is moved, so
/// that colours do not flicker.
void ViewerApp::refresh_histogram() {
  const ViewState& state = document_->history.now();
  const MapGeometry geometry = document_->tiles->geometry(state.head);
  const PaneSize pane = panels_.matrix().pane_size();
  if (pane.width <= 0) return;
  HistogramKey key;
  key.rect = state.rect;
  key.pool = state.pool;
  key.quantity = product_quantity(state.product);
  const int level = view_level(state.rect, geometry, pane);
  for (const TileId& id : seen_tiles(state, geometry, level)) {
    if (auto tile = document_->tiles->find(id)) key.tiles.push_back(std::move(tile));
  }
  if (key.tiles.empty()) {
    TileId top{state.head, key.quantity, geometry.top_level, 0, 0};
    if (auto tile = document_->tiles->find(top)) key.tiles.push_back(std::move(tile));
  }
  if (counting_.valid() &&
      counting_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    histogram_ = counting_.get();
    histogram_key_ = std::move(counting_key_);
  }
  histogram_stale_ = !(key == histogram_key_);
  if (!histogram_stale_ || counting_.valid() || panels_.matrix().interacting()) return;
  // The first tiles are counted at once, so that the first picture has its colours.
  if (histogram_.empty() && key.tiles.size() <= 2) {
    histogram_ = ValueHistogram::of(key.tiles, key.rect, key.pool);
    histogram_key_ = std::move(key);
    histogram_stale_ = false;
    return;
  }
  counting_key_ = key;
  counting_ = std::async(std::launch::async, [key = std::move(key), window = window_] {
    ValueHistogram counted = ValueHistogram::of(key.tiles, key.rect, key.pool);
    window->wake();
    return counted;
  });
}

void ViewerApp::draw_document(const Ui& ui, const ScreenRect& window, PanelRequests& requests) {
  Document& d = *document_;
  refresh_line();
  wish();
  uploads_left_ = textures_.upload(
      *d.tiles, wishes_.tiles, panels_.matrix().interacting() ? kUploadMsMoving : kUploadMsStill);
  draw_again_ = uploads_left_;
  refresh_readout();
  refresh_histogram();
  const ViewState& state = d.history.now();
  const MapSource& call = d.call();
  const int64_t keys = call.keys.tokens();
  const Scene scene{
      .state = state,
      .call = call,
      .picker = d.picker,
      .queries = TokenNames::of(call, state.head.batch, false),
      .keys = TokenNames::of(call, state.head.batch, true),
      .tiles = *d.tiles,
      .geometry = d.tiles->geometry(state.head),
      .scale = shown_scale(state, shown_range(state, histogram_, keys)),
      .factor = product_factor(state.product, keys),
      .histogram = histogram_,
      .readout = readout_,
      .line = line_,
      .line_pending = line_wanted_ && !(line_ && line_->request == *line_wanted_),
      .source = d.tiles->status(),
      .texture_mib = texture_mib(),
      .warning = d.warning(),
  };
  if (!d.warning_told && d.quick_check && d.quick_check->done()) {
    d.warning_told = true;
    if (settings_.warn && !scene.warning.empty()) settings_.warn(scene.warning);
  }
  const PaneSize before = panels_.matrix().pane_size();
  panels_.draw(ui, window, scene, requests);
  const PaneSize after = panels_.matrix().pane_size();
  // Wishes are for a pane's size, which is known once it was drawn.
  if (before.width != after.width || before.height != after.height) draw_again_ = true;
  if (panels_.matrix().seen().complete && !counters_.first_picture_ms) {
    counters_.first_picture_ms = clock_.milliseconds() - opened_at_;
  }
}

}  // namespace attnscope
