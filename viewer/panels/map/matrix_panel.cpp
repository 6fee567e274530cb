#include "viewer/panels/map/matrix_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "viewer/panels/legend.h"
#include "viewer/panels/map/crosshair.h"
#include "viewer/panels/map/mask_chip.h"
#include "viewer/panels/map/rulers.h"
#include "viewer/panels/pin_mark.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kRulerHeight = 40;
constexpr float kRulerWidth = 64;
constexpr float kFooterHeight = 104;
/// A map that would be lower above its footer goes without the footer.
constexpr float kLeastMap = 64;
/// Of equal scales, the shorter side of the map.
constexpr float kLeastSide = 8;

/// True where B's half of a split map can show another part of it.
bool has_own_part(const Scene& scene) { return scene.other.state && !scene.state.other->lock_zoom; }

/// Moves and zooms what is seen: of B (`of_other`) its own part of the map, where it has one.
void move_view(const Scene& scene, bool of_other, const Action& by, PanelRequests& requests) {
  if (!of_other || scene.state.other->lock_zoom) return requests.act(by);
  ViewState moved = *scene.other.state;
  const CallLimits size{scene.geometry.rows, scene.geometry.cols, 1, 1};
  moved.head = {};
  requests.act(action::SetOtherRect{apply_action(moved, by, {{size}}).rect});
}

/// The part of the area, from its upper left corner on, where `rect` has as many pixels an entry
/// down as across; at least `least` pixels a side.
ScreenRect with_equal_axes(const ScreenRect& area, const MapRect& rect, float least) {
  const double across = area.width() / (rect.k1 - rect.k0);
  const double down = area.height() / (rect.q1 - rect.q0);
  const double pixels = std::min(across, down);
  const auto side = [&](double entries) {
    return std::max(least, static_cast<float>(std::floor(entries * pixels)));
  };
  return {area.x0, area.y0, area.x0 + side(rect.k1 - rect.k0), area.y0 + side(rect.q1 - rect.q0)};
}

constexpr float kOrderBox = 116, kLeastOrderBox = 40, kOrderCaption = 44;

/// Of the list of orders: less where that leaves room for the map's size.
float order_box(const Ui& ui, const ScreenRect& rect) {
  return std::clamp(rect.width() / ui.scale - kOrderCaption - 14 - 280, kLeastOrderBox, kOrderBox);
}

/// Where the list of orders begins in the header; nothing where the map has one order, or there is
/// no room beside the title.
std::optional<float> order_list_x(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  const bool known =
      !ordered_grids(*scene.queries.grid).empty() || !ordered_grids(*scene.keys.grid).empty();
  const bool computed = !scene.call.precision.empty();
  const float left = rect.x1 - ui.px(order_box(ui, rect) + kOrderCaption + 14);
  if (!known || !computed || !scene.call.evicted.empty()) return std::nullopt;
  if (left < rect.x0 + ui.px(72)) return std::nullopt;
  return left;
}

/// "queries ↓ 1024   keys → 1024", and the order that they stand in where no list tells it.
std::string sizes_text(const Ui& ui, const ScreenRect& rect, const Scene& scene) {
  const MapOrder& order = scene.state.order;
  const std::optional<float> list = order_list_x(ui, rect, scene);
  std::string text =
      fmt::format("queries \u2193 {}   keys \u2192 {}", scene.geometry.rows, scene.geometry.cols);
  if (!order.is_stored() && !(list && order.rows == order.keys)) {
    text += "   \u00b7 " + order_text(order);
  }
  return text;
}

/// A list of orders at the right of the header, of maps that can be shown in another one.
void choose_order(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                  PanelRequests& requests) {
  const std::optional<float> left = order_list_x(ui, rect, scene);
  if (!left) return;
  std::vector<std::string> names{"stored",      "yxt",     "xyt",   "tiles:4x4x4",
                                 "tiles:6x8x8", "hilbert", "morton"};
  const MapOrder& order = scene.state.order;
  // Where one side alone stands in another order, that one is named.
  const TokenOrder& shown = order.rows.kind == TokenOrder::Kind::stored ? order.keys : order.rows;
  const bool listed = shown.kind == TokenOrder::Kind::listed;
  const std::string now = listed ? shown.text().substr(shown.text().rfind('/') + 1) : shown.text();
  if (std::find(names.begin(), names.end(), now) == names.end()) names.push_back(now);
  const auto chosen = std::find(names.begin(), names.end(), now) - names.begin();
  ImGui::SetCursorScreenPos({*left, rect.y0 + ui.px(2)});
  const int taken =
      choice(ui, "Matrix", "Order", names, static_cast<int>(chosen), order_box(ui, rect));
  if (taken < 0) return;
  const std::string& name = names[static_cast<size_t>(taken)];
  requests.act(action::SetOrder{name == now ? shown : TokenOrder::parse(name)});
}

constexpr const char* kMagnify = "Magnify";

/// Where the button of the magnifier begins; nothing where the header has no room.
std::optional<float> magnify_x(const Ui& ui, const ScreenRect& rect,
                               const std::optional<float>& orders) {
  const float right = orders ? *orders - ui.px(8) : rect.x1 - ui.px(12);
  const float left = right - text_size(ui.fonts.secondary, kMagnify).x - ui.px(16);
  if (left < rect.x0 + ui.px(orders ? 160 : 240)) return std::nullopt;
  return left;
}

void switch_magnifier(const Ui& ui, const ScreenRect& rect, float left, const Scene& scene,
                      PanelRequests& requests) {
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({left, rect.y0 + ui.px(4)});
  const bool on = scene.state.magnifier;
  if (tool_button(ui, "Matrix/Magnify", kMagnify, on,
                  "11 \u00d7 11 entries around the mouse with their numbers (hold Z)")) {
    // Its key may be held: what it switches is what stays.
    requests.command = CommandId::magnify;
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace

struct MatrixPanel::Areas {
  ScreenRect map, top, left, footer, mini;
  MapTracks::Areas tracks;
  bool has_footer = true;  ///< else there are no areas of footer and mini
};

MatrixPanel::Areas MatrixPanel::areas_of(const Ui& ui, const ScreenRect& rect,
                                         const ViewState& state) {
  Areas a;
  const float rows = MapTracks::rows_width(ui, state), keys = MapTracks::keys_height(ui, state);
  const float ruler_bottom = rect.y0 + ui.px(kHeaderHeight + kRulerHeight);
  const float ruler_right = rect.x0 + ui.px(kRulerWidth);
  // Tracks that would leave next to nothing of the map are left out.
  a.tracks.has_rows = rows > 0 && rect.x1 - ruler_right - rows >= ui.px(2 * kLeastMap);
  a.tracks.has_keys = keys > 0 && rect.y1 - ruler_bottom - keys >= ui.px(2 * kLeastMap);
  const float map_top = ruler_bottom + (a.tracks.has_keys ? keys : 0);
  const float map_left = ruler_right + (a.tracks.has_rows ? rows : 0);
  a.has_footer = rect.y1 - ui.px(kFooterHeight) >= map_top + ui.px(kLeastMap);
  const float below = ui.px(a.has_footer ? kFooterHeight : 8);
  const float map_bottom = std::max(map_top + ui.px(32), rect.y1 - below);
  a.map = {std::round(map_left), std::round(map_top), std::floor(rect.x1 - ui.px(12)),
           std::floor(map_bottom)};
  a.map.x1 = std::max(a.map.x1, a.map.x0 + ui.px(32));
  a.footer = {a.map.x0, a.map.y1, a.map.x1, rect.y1};
  if (state.equal_axes) a.map = with_equal_axes(a.map, state.rect, ui.px(kLeastSide));
  const float gap = ui.px(1);
  a.top = {a.map.x0, rect.y0 + ui.px(kHeaderHeight + 2), a.map.x1, std::round(ruler_bottom) - gap};
  a.left = {rect.x0 + ui.px(4), a.map.y0, std::round(ruler_right) - gap, a.map.y1};
  a.tracks.rows = {a.left.x1 + gap, a.map.y0, a.map.x0 - gap, a.map.y1};
  a.tracks.rows_label = {a.tracks.rows.x0, a.top.y0, a.tracks.rows.x1, a.top.y1};
  a.tracks.keys = {a.map.x0, a.top.y1 + gap, a.map.x1, a.map.y0 - gap};
  a.tracks.keys_label = {a.left.x0, a.tracks.keys.y0, a.left.x1, a.tracks.keys.y1};
  const float side = ui.px(kMiniSide);
  a.mini = {a.footer.x1 - side, a.footer.y0 + ui.px(8), a.footer.x1, a.footer.y0 + ui.px(8) + side};
  return a;
}

/// The tiles of a view, clipped; how well it is known.
SeenExactness MatrixPanel::draw_tiles(const Ui& ui, const Scene& scene, const ViewState& state,
                                      const ColourScale& scale, const ScreenRect& clip,
                                      const ViewTransform& view, MapLayer& layer) {
  const DrawPlan plan = plan_drawing(state, scene.geometry, pane_,
                                     [&](const TileId& id) { return textures_->has(id); });
  layer.quads.clear();
  SeenExactness seen{plan.missing == 0 && !plan.tiles.empty(),
                     plan.stand_ins == 0,
                     plan.level,
                     plan.level,
                     0,
                     !scene.tiles_problem.empty()};
  for (const DrawnTile& piece : plan.tiles) {
    const TileTextures::Drawn drawn = textures_->use(piece.source);
    seen.coarsest = std::max(seen.coarsest, piece.source.level);
    if (piece.source.level == plan.level && !drawn.tile->exact) {
      seen.sampled_rows = seen.sampled_rows == 0
                              ? drawn.tile->rows_per_texel
                              : std::min(seen.sampled_rows, drawn.tile->rows_per_texel);
    }
    seen.exact = seen.exact && drawn.tile->exact;
    layer.quads.push_back({view.x(piece.place.k0), view.y(piece.place.q0), view.x(piece.place.k1),
                           view.y(piece.place.q1), static_cast<float>(piece.col0),
                           static_cast<float>(piece.row0), static_cast<float>(piece.col1),
                           static_cast<float>(piece.row1), drawn.slot});
  }
  seen.exact = seen.exact && seen.complete;
  layer.add_tiles(textures_->pool(), painter_colours(state, scale, scene.factor, ui.theme),
                  scale.map(), clip);
  return seen;
}

void MatrixPanel::draw_map(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  if (!scene.other.state) {
    seen_ = draw_tiles(ui, scene, scene.state, scene.scale, view.area, view, map_layer_);
    return;
  }
  ScreenRect left = view.area, right = view.area;
  left.x1 = right.x0 = line_x(scene, view);
  seen_ = draw_tiles(ui, scene, scene.state, scene.scale, left, view, map_layer_);
  const ViewTransform other{scene.other.state->rect, view.area};
  const SeenExactness seen =
      draw_tiles(ui, scene, *scene.other.state, *scene.other.scale, right, other, other_layer_);
  other_level_ = seen.level;
  seen_.complete = seen_.complete && seen.complete;
  seen_.exact = seen_.exact && seen.exact;
  seen_.coarsest = std::max(seen_.coarsest, seen.coarsest);
  if (seen.sampled_rows > 0 &&
      (seen_.sampled_rows == 0 || seen.sampled_rows < seen_.sampled_rows)) {
    seen_.sampled_rows = seen.sampled_rows;
  }
}

float MatrixPanel::line_x(const Scene& scene, const ViewTransform& view) {
  return std::round(view.area.x0 + view.area.width() * scene.state.other->split.value_or(0.5f));
}

/// The line between A and B, which can be dragged, and which side is which.
void MatrixPanel::draw_split_line(const Ui& ui, const Scene& scene, const ViewTransform& view,
                                  PanelRequests& requests) const {
  const float x = line_x(scene, view), half = ui.px(5);
  const ScreenRect& area = view.area;
  ImGui::SetCursorScreenPos({x - half, area.y0});
  ImGui::InvisibleButton("split line", {2 * half, area.height()});
  mark(ui, "Matrix/Split");
  const bool held = ImGui::IsItemActive();
  if (held || ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (held && ImGui::GetIO().MouseDelta.x != 0) {
    requests.act(action::SetSplitLine{
        std::clamp((ImGui::GetIO().MousePos.x - area.x0) / area.width(), 0.0f, 1.0f)});
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({x - ui.px(1.5f), area.y0}, {x + ui.px(1.5f), area.y1},
                     IM_COL32(0, 0, 0, 160));
  draw.AddRectFilled({x - ui.px(0.5f), area.y0}, {x + ui.px(0.5f), area.y1}, ui.theme.side_b);
  const float middle = std::round((area.y0 + area.y1) / 2);
  draw.AddRectFilled({x - ui.px(4), middle - ui.px(14)}, {x + ui.px(4), middle + ui.px(14)},
                     ui.theme.side_b, ui.px(3));
  ImFont* const font = ui.fonts.secondary;
  const auto tag = [&](const std::string& text, float at, bool right, ImU32 colour) {
    const ImVec2 size = text_size(font, text);
    const float left = right ? at + ui.px(8) : at - ui.px(8) - size.x;
    if (left < area.x0 || left + size.x > area.x1) return;
    draw.AddRectFilled({left - ui.px(4), area.y0 + ui.px(6)},
                       {left + size.x + ui.px(4), area.y0 + ui.px(8) + size.y + ui.px(2)},
                       ui.theme.pane, ui.px(3));
    put_text(ui, font, left, area.y0 + ui.px(8), colour, text);
  };
  tag("A", x, false, ui.theme.text);
  tag("B", x, true, ui.theme.side_b);
}

/// Moves the map as far as the mouse went.
void MatrixPanel::pan_by_mouse(const Scene& scene, const ViewTransform& view,
                               PanelRequests& requests) {
  interacting_ = true;
  const ImVec2 moved = ImGui::GetIO().MouseDelta;
  if (moved.x == 0 && moved.y == 0) return;
  const action::Pan by{-static_cast<double>(moved.y) * view.queries_per_pixel(),
                       -static_cast<double>(moved.x) * view.keys_per_pixel()};
  move_view(scene, on_other_, by, requests);
}

void MatrixPanel::take_mouse(const Ui& ui, const Scene& scene, const ViewTransform& whole,
                             PanelRequests& requests) {
  ImGui::SetCursorScreenPos({whole.area.x0, whole.area.y0});
  ImGui::InvisibleButton("map", {whole.area.width(), whole.area.height()});
  ImGui::SetItemAllowOverlap();
  ui.labels.add("Matrix/Map", whole.area);
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsItemHovered();
  // The middle button moves the map, whatever a drag of the first one does.
  const bool middle = hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Middle);
  const bool panned = panning_ && ImGui::IsMouseDown(ImGuiMouseButton_Middle);
  panning_ = middle || panned;
  if (ImGui::IsItemActivated() || (!ImGui::IsItemActive() && !panned)) {
    on_other_ = scene.other.state && io.MousePos.x > line_x(scene, whole);
  }
  const ViewTransform view{on_other_ ? scene.other.state->rect : whole.rect, whole.area};
  const double key = view.key(io.MousePos.x);
  const double query = view.query(io.MousePos.y);
  const auto move = [&](const Action& by) { move_view(scene, on_other_, by, requests); };
  const bool inside = key >= 0 && query >= 0 && key < static_cast<double>(scene.geometry.cols) &&
                      query < static_cast<double>(scene.geometry.rows);
  interacting_ = false;
  if (panned) pan_by_mouse(scene, view, requests);
  const double along = scene.state.reverse ? key : query;
  if (ImGui::IsItemActivated()) {
    dragged_ = false;
    brushed_from_ = inside && io.KeyShift ? std::optional(along) : std::nullopt;
    if (inside && !brushed_from_ && MaskBrushing::is_chosen(scene)) brushing_.begin(query, key);
  }
  if (brushing_.is_held()) return brushing_.drag(scene, query, key, requests);
  if (brushed_from_) return brush(scene, along, requests);
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(0, ui.px(3))) {
    dragged_ = true;
    pan_by_mouse(scene, view, requests);
  }
  if (hovered && io.MouseWheel != 0) {
    interacting_ = true;
    move(action::ZoomAt{query, key, std::pow(kWheelZoom, static_cast<double>(io.MouseWheel))});
  }
  if (!hovered || !inside) return;
  const MapPoint point{scene.placed.rows->token(static_cast<int64_t>(query)),
                       scene.placed.keys->token(static_cast<int64_t>(key))};
  requests.hovered = point;
  requests.hovered_other = on_other_;
  requests.follow = scene.state.reverse ? point.key : point.query;
  if (ImGui::IsMouseDoubleClicked(0)) {
    move(action::ZoomAt{query, key, 2});
  } else if (ImGui::IsItemDeactivated() && !dragged_) {
    requests.act(action::PickQuery{{{*requests.follow}}});
  }
  if (ImGui::IsMouseClicked(1)) requests.act(action::DropQuery{});
}

bool MatrixPanel::cancel_drag() {
  return rows_hand_.cancel() || keys_hand_.cancel() || other_keys_hand_.cancel();
}

/// Shows the block of the token that is named. Before map and rulers, over which it lies.
void MatrixPanel::click_chip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                             const PickedChip& chip, PanelRequests& requests) {
  ImGui::SetCursorScreenPos({chip.rect.x0, chip.rect.y0});
  const bool clicked = ImGui::InvisibleButton("picked", {chip.rect.width(), chip.rect.height()});
  mark(ui, "Matrix/Picked");
  if (!clicked) return;
  const RulerAxis axis = chip.keys ? key_axis(scene, view) : query_axis(scene, view);
  const bool in_part = chip.keys && has_own_part(scene);
  const float end = in_part ? line_x(scene, view) : axis.high;
  requests.act(shown_block(axis.part(axis.low, end), view, chip.place));
}

/// The rows (reversed: columns) that are dragged over with Shift, of which the mean is shown when
/// the button is let go. With Ctrl they come to those that are picked.
void MatrixPanel::brush(const Scene& scene, double along, PanelRequests& requests) {
  const int64_t extent = scene.state.reverse ? scene.geometry.cols : scene.geometry.rows;
  const auto place = [&](double at) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0, extent - 1);
  };
  const auto [first, last] = std::minmax({place(*brushed_from_), place(along)});
  if (ImGui::IsItemActive()) {
    brushed_ = {first, last + 1};
    return;
  }
  brushed_from_.reset();
  brushed_ = {};
  ChosenQuery query;
  if (ImGui::GetIO().KeyCtrl && scene.state.query) query = *scene.state.query;
  const PlacedSide& side = scene.state.reverse ? *scene.placed.keys : *scene.placed.rows;
  for (int64_t i = first; i <= last; ++i) query.tokens.push_back(side.token(i));
  requests.act(action::PickQuery{std::move(query)});
}

/// Hatches what the mask takes away because a cache had dropped it; what never could be seen stays
/// dotted.
void MatrixPanel::draw_evicted(const Ui& ui, const Scene& scene, const ViewTransform& view) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  float drawn = -1;
  IndexRange latest;
  for (const EvictedKeys& each : scene.call.evicted) {
    const ScreenRect rect{std::max(view.area.x0, view.x(static_cast<double>(each.keys.begin))),
                          std::max(view.area.y0, view.y(static_cast<double>(each.queries.begin))),
                          std::min(view.area.x1, view.x(static_cast<double>(each.keys.end))),
                          std::min(view.area.y1, view.y(static_cast<double>(each.queries.end)))};
    if (rect.x0 >= rect.x1 || rect.y0 >= rect.y1) continue;
    // Of queries that share a row of pixels, the first stands for all.
    if (each.queries != latest && rect.y1 <= drawn) continue;
    latest = each.queries;
    drawn = std::floor(rect.y0) + 1;
    // The lines of all rectangles are parts of the same ones.
    draw_hatch(ui, draw, {rect.x0, rect.y0, rect.x1, std::max(rect.y1, rect.y0 + 1)}, -rect.y1);
  }
}

/// The rows, or columns, that are dragged over.
void MatrixPanel::draw_brushed(const Ui& ui, const Scene& scene, const ViewTransform& view) const {
  if (brushed_.empty()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const double from = static_cast<double>(brushed_.begin), to = static_cast<double>(brushed_.end);
  if (scene.state.reverse) {
    draw.AddRectFilled({view.x(from), view.area.y0}, {view.x(to), view.area.y1},
                       faded(ui.theme.key, 0.3f));
  } else {
    draw.AddRectFilled({view.area.x0, view.y(from)}, {view.area.x1, view.y(to)},
                       faded(ui.theme.query, 0.3f));
  }
}

/// Entries that are kept.
void MatrixPanel::draw_pins(const Ui& ui, const Scene& scene, const ViewTransform& view) const {
  for (int64_t number = 1; number <= kPins; ++number) {
    const std::optional<Pin> pin = scene.state.pins.at(number);
    if (!pin) continue;
    const float x = view.x(static_cast<double>(scene.placed.keys->place(pin->key)) + 0.5);
    const float y = view.y(static_cast<double>(scene.placed.rows->place(pin->query)) + 0.5);
    if (view.area.contains(x, y))
      draw_pin(ui, "Matrix", x, y, number, IM_COL32(255, 255, 255, 255));
  }
}

/// Where B can show another part of the map, its keys have a ruler of their own over its half.
void MatrixPanel::draw_rulers(const Ui& ui, const Areas& areas, const Scene& scene,
                              const ViewTransform& view, const std::optional<PickedChip>& chip,
                              PanelRequests& requests) {
  std::optional<int64_t> query, key;
  if (scene.readout) {
    query = scene.readout->point.query;
    key = scene.readout->point.key;
  }
  const auto along = [&](RulerHand& hand, const ScreenRect& ruler, const RulerAxis& axis,
                         const ViewTransform& shown, std::optional<int64_t> mark, bool of_other) {
    const ImU32 colour = axis.vertical ? ui.theme.query : ui.theme.key;
    draw_ruler(ui, ruler, axis, mark, colour);
    const auto wanted = hand.take(ui, ruler, axis, shown);
    if (!wanted) return;
    move_view(scene, of_other, wanted->by, requests);
    requests.instead = wanted->instead;
    interacting_ = true;
  };
  RulerAxis queries = query_axis(scene, view), keys = key_axis(scene, view);
  if (chip) (chip->keys ? keys : queries).taken = chip->rect;
  along(rows_hand_, areas.left, queries, view, query, false);
  if (!has_own_part(scene)) {
    along(keys_hand_, areas.top, keys, view, key, false);
  } else {
    const float end = line_x(scene, view);
    const ViewTransform other{scene.other.state->rect, view.area};
    ScreenRect left = areas.top, right = areas.top;
    left.x1 = right.x0 = end;
    if (left.width() >= 1) along(keys_hand_, left, keys.part(keys.low, end), view, key, false);
    const RulerAxis others = key_axis(scene, other);
    if (right.width() >= 1) {
      along(other_keys_hand_, right, others.part(end, others.high), other, key, true);
    }
  }
  if (chip) draw_chip(ui, *chip);
}

void MatrixPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests) {
  begin_pane(ui, "matrix", rect);
  const Areas areas = areas_of(ui, rect, scene.state);
  pane_ = {areas.map.width(), areas.map.height()};
  const ViewTransform view{scene.state.rect, areas.map};
  const TileSourceStatus& work = scene.source;
  double progress = -1;
  if (work.busy) progress = work.exact_progress > 0 ? work.exact_progress : 1;
  const std::optional<float> orders = order_list_x(ui, rect, scene);
  const std::optional<float> magnify = magnify_x(ui, rect, orders);
  const float controls = magnify.value_or(orders.value_or(rect.x1));
  pane_header(
      ui, rect,
      {"Matrix", sizes_text(ui, rect, scene), ViewPane::matrix, progress, rect.x1 - controls},
      scene.state, requests);
  if (magnify) switch_magnifier(ui, rect, *magnify, scene, requests);
  choose_order(ui, rect, scene, requests);
  ImGui::GetWindowDrawList()->AddRectFilled({areas.map.x0, areas.map.y0},
                                            {areas.map.x1, areas.map.y1}, ui.theme.raised);
  draw_map(ui, scene, view);
  const auto chip = picked_chip(ui, scene, view, {areas.top, areas.left});
  if (chip) click_chip(ui, scene, view, *chip, requests);
  take_mouse(ui, scene, view, requests);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.PushClipRect({areas.map.x0, areas.map.y0}, {areas.map.x1, areas.map.y1}, true);
  // Overlays of A lie over A alone; B's half has them where both show the same part of the map.
  const float end = scene.other.state ? line_x(scene, view) : areas.map.x1;
  const bool same_part = !scene.other.state || scene.other.state->rect == scene.state.rect;
  draw.PushClipRect({areas.map.x0, areas.map.y0}, {end, areas.map.y1}, true);
  mask_.draw(ui, scene, view);
  brushing_.draw(ui, scene, view);
  draw_evicted(ui, scene, view);
  const CellNumbers numbers =
      CellNumbers::of(ui, scene, scene.state, scene.scale, view, seen_.level);
  CellNumbers of_other;
  if (scene.other.state) {
    of_other = CellNumbers::of(ui, scene, *scene.other.state, *scene.other.scale,
                               {scene.other.state->rect, areas.map}, other_level_);
  }
  notation_ = numbers.notation_with(of_other);
  numbers.draw(ui, notation_);
  if (same_part) draw.PopClipRect();
  draw_frame_lines(ui, areas.map, key_axis(scene, view));
  draw_frame_lines(ui, areas.map, query_axis(scene, view));
  draw_brushed(ui, scene, view);
  const bool is_pointed = scene.readout && (same_part || !on_other_);
  // What is picked lies over the dashes.
  if (is_pointed) mark_pointed(ui, scene, view);
  draw_picked(ui, scene, view);
  draw_pins(ui, scene, view);
  if (is_pointed) draw_crosshair(ui, scene, view);
  if (!same_part) draw.PopClipRect();
  if (scene.other.state) {
    draw.PushClipRect({end, areas.map.y0}, {areas.map.x1, areas.map.y1}, true);
    of_other.draw(ui, notation_);
    if (!same_part) {
      const ViewTransform other{scene.other.state->rect, areas.map};
      draw_frame_lines(ui, areas.map, key_axis(scene, other));
      draw_frame_lines(ui, areas.map, query_axis(scene, other));
    }
    draw.PopClipRect();
    draw_split_line(ui, scene, view, requests);
  }
  if (seen_.failed && !seen_.complete) {
    put_problem(ui, "Matrix", areas.map, "This map cannot be shown", scene.tiles_problem);
  }
  draw.PopClipRect();
  tracks_.draw(ui, scene, view, areas.tracks, requests);
  draw_rulers(ui, areas, scene, view, chip, requests);
  if (areas.has_footer) {
    draw_footer(ui, areas.footer, scene, requests);
    interacting_ = mini_.draw(ui, areas.mini, scene, requests) || interacting_;
  }
  end_pane();
}

}  // namespace attnscope
