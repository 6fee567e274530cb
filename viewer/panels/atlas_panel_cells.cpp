// The cells of the atlas, and the legend below them.
#include "viewer/panels/atlas_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "io/pictures/class_colours.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kLeastHeadCell = 6;
constexpr float kMostHeadCell = 192;
constexpr float kHeadGap = 2;   ///< between cells, of small ones half of it
constexpr float kLayerGap = 4;  ///< between layers
/// Smaller cells have no thumbnail that says anything: they have the colour of the head's class.
constexpr float kThumbnailCell = 20;
/// Seconds from the last turn of the wheel until what came under the mouse is shown.
constexpr double kScrollRest = 0.25;
constexpr float kNumberedCell = 40;  ///< from this on a cell's number is printed in it
constexpr float kFramedCell = 14;    ///< from this on a selected cell has a frame
constexpr float kClassSwatch = 10;

/// Of the cell's head, for scripts: the layer's name as its line has it.
std::string cell_label(const std::string& line, const AtlasHead& head) {
  const std::string layer = line.empty() ? std::to_string(head.name.layer) : line;
  return fmt::format("Atlas/L{}/H{}", layer, head.name.head);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "\u2013";
  const double size = std::abs(value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

/// "L2 H13", of a head whose layer nobody recorded "H13".
std::string short_name(const HeadName& name) {
  const bool layered = name.layer != kNoLayer && !name.place.unrecorded.layer;
  return (layered ? fmt::format("L{} ", name.layer) : "") + fmt::format("H{}", name.head);
}

/// The colours of heads are those of maps, whatever the matrix has: a difference has others.
Colormap head_colours(const ViewState& state) {
  return parse_colormap(state.colormap).value_or(Colormap::viridis);
}

/// How a head's weights are spread over the colours.
ScaleKind thumbnail_scale(const ViewState& state) {
  return state.product == ViewProduct::logits ? ScaleKind::log2 : state.scale;
}

/// Of a metric over the heads that are shown.
ColourScale metric_scale(const Scene& scene) {
  const Colormap map = head_colours(scene.state);
  if (!scene.atlas->range) return ColourScale::of_nothing(map, ScaleKind::linear);
  const auto [low, high] = *scene.atlas->range;
  return ColourScale(map, ScaleKind::linear, widened_range({low, high}, ScaleKind::linear));
}

float gap_of(const Ui& ui, const AtlasLayout& layout) {
  return ui.px(layout.cell < static_cast<double>(ui.px(2 * kLeastHeadCell)) ? kHeadGap / 2
                                                                            : kHeadGap);
}

bool is_dark(Rgb c) { return 0.3 * c.r + 0.59 * c.g + 0.11 * c.b < 128; }

/// The rows of an atlas have their layer's name, or where a layer goes on the number of heads
/// before.
std::string row_label(const AtlasCells& atlas, const AtlasRow& row) {
  return row.first == 0 ? atlas.lines[row.line].label : fmt::format("+{}", row.first);
}

/// The numbers of the heads above the first row, as many as have room; `x` is where it begins.
void draw_head_numbers(const Ui& ui, const AtlasLayout& layout, const ScreenRect& area, float x,
                       const AtlasCells& atlas) {
  const auto longest = std::max_element(
      atlas.lines.begin(), atlas.lines.end(),
      [](const AtlasLine& a, const AtlasLine& b) { return a.heads.size() < b.heads.size(); });
  ImFont* const font = ui.fonts.secondary;
  const std::string title = "head \u2192";
  const auto cell = static_cast<float>(layout.cell);
  const float end = x + static_cast<float>(layout.columns) * cell;
  const float title_from = std::max(end + ui.px(8), area.x0);
  const bool has_title = title_from + text_size(font, title).x <= area.x1;
  if (has_title) put_text(ui, font, title_from, area.y0, ui.theme.secondary, title);
  float free = area.x0;
  if (atlas.lines.size() > 1) {
    const std::string layer = "layer";
    put_text(ui, font, x - ui.px(6), area.y0, ui.theme.secondary, layer, Align::right);
    free = x;
  }
  for (size_t c = 0; c < layout.columns; ++c) {
    const std::string name = std::to_string(longest->heads[c].name.head);
    const float middle = x + (static_cast<float>(c) + 0.5f) * cell - gap_of(ui, layout) / 2;
    const float half = text_size(font, name).x / 2;
    if (middle - half < free || middle + half > area.x1) continue;
    put_text(ui, font, middle, area.y0, ui.theme.secondary, name, Align::centre);
    free = middle + half + ui.px(6);
  }
}

/// The place of a class in the legend.
struct ClassPlace {
  HeadClass which;
  std::string name, text;
  ScreenRect rect;
};

/// The classes that heads have, side by side, in as many lines as they need.
std::vector<ClassPlace> class_places(const Ui& ui, const ScreenRect& rect,
                                     const AtlasCells& atlas) {
  const float line = ui.fonts.secondary->FontSize + ui.px(6);
  float x = rect.x0, y = rect.y0;
  std::vector<ClassPlace> places;
  for (size_t i = 0; i < atlas.classes.size(); ++i) {
    if (atlas.classes[i] == 0) continue;
    const auto which = static_cast<HeadClass>(i);
    const std::string name(head_class_name(which));
    const std::string text = fmt::format("{} {}", name, atlas.classes[i]);
    const float width =
        std::min(ui.px(kClassSwatch + 6) + text_size(ui.fonts.secondary, text).x, rect.width());
    if (x > rect.x0 && x + width > rect.x1) {
      x = rect.x0;
      y += line;
    }
    places.push_back({which, name, text, {x, y, x + width, y + line}});
    x += width + ui.px(14);
  }
  return places;
}

/// A swatch, a name and a count of each class; a click shows its heads alone, or all again.
void draw_class_legend(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImFont* const font = ui.fonts.secondary;
  for (const auto& [which, name, text, place] : class_places(ui, rect, *scene.atlas)) {
    const bool chosen = scene.state.atlas.filter == name;
    const float top = std::round(place.y0 + (font->FontSize - ui.px(kClassSwatch)) / 2);
    draw.AddRectFilled({place.x0, top}, {place.x0 + ui.px(kClassSwatch), top + ui.px(kClassSwatch)},
                       to_u32(class_colour(which)));
    const float words = place.x0 + ui.px(kClassSwatch + 6);
    put_fitting(ui, font, words, place.y0, place.x1 - words + 1,
                chosen ? ui.theme.text : ui.theme.secondary, text);
    ImGui::SetCursorScreenPos({place.x0, place.y0});
    if (ImGui::InvisibleButton(name.c_str(), {place.width(), place.height()})) {
      AtlasLook look = scene.state.atlas;
      look.filter = chosen ? "" : name;
      requests.act(action::SetAtlas{look});
    }
    mark(ui, "Atlas/Class " + name);
    if (ImGui::IsItemHovered()) {
      tooltip(chosen ? "show all heads again" : "show the heads of this class alone");
    }
  }
}

}  // namespace

float AtlasPanel::legend_height(const Ui& ui, const ScreenRect& above, const Scene& scene) const {
  const float usual = ui.px(kLegendHeight + 16);
  ScreenRect area = above;
  area.y1 -= usual;
  if (scene.atlas->shown == 0 || fit(ui, area, scene).content != Content::classes) return usual;
  const ScreenRect width{above.x0 + ui.px(8), 0, above.x1 - ui.px(8), 0};
  const std::vector<ClassPlace> places = class_places(ui, width, *scene.atlas);
  return places.empty() ? usual : std::max(usual, places.back().rect.y1 + ui.px(16));
}

AtlasPanel::Layout AtlasPanel::fit(const Ui& ui, const ScreenRect& area, const Scene& scene) const {
  const AtlasCells& atlas = *scene.atlas;
  const float line = ui.fonts.secondary->FontSize;
  Layout layout;
  AtlasRoom room;
  room.least = static_cast<double>(ui.px(kLeastHeadCell));
  std::vector<size_t> heads;
  for (const AtlasLine& each : atlas.lines) {
    heads.push_back(each.heads.size());
    const float label = text_size(ui.fonts.secondary, each.label).x;
    layout.labels = std::max(layout.labels, std::min(label, ui.px(96)) + ui.px(8));
  }
  if (atlas.sorted) {
    // A name and its number stand below each cell, which is as wide as they are.
    layout.labels = 0;
    layout.name = 2 * line + ui.px(4);
    for (const AtlasHead& head : atlas.lines[0].heads) {
      const float name = text_size(ui.fonts.secondary, short_name(head.name)).x + ui.px(8);
      room.least = std::max(room.least, static_cast<double>(name));
    }
  } else {
    layout.heads = line + ui.px(4);
    const float title = text_size(ui.fonts.secondary, "layer").x + ui.px(8);
    if (atlas.lines.size() > 1) layout.labels = std::max(layout.labels, title);
  }
  room.width = static_cast<double>(area.width() - ImGui::GetStyle().ScrollbarSize);
  room.height = static_cast<double>(area.height() - layout.heads);
  room.labels = static_cast<double>(layout.labels);
  room.name = static_cast<double>(layout.name);
  room.gap = static_cast<double>(ui.px(kLayerGap));
  room.most = static_cast<double>(ui.px(kMostHeadCell));
  layout.cells = AtlasLayout::fit(heads, room, static_cast<double>(zoom_));
  const bool small = layout.cells.cell < static_cast<double>(ui.px(kThumbnailCell));
  const std::string& metric = scene.state.atlas.metric;
  layout.content = metric == kClassCells ? Content::classes
                   : !metric.empty()     ? Content::numbers
                   : small               ? Content::classes
                                         : Content::thumbnails;
  return layout;
}

ScreenRect AtlasPanel::cell_rect(const Ui& ui, const Layout& layout, const ImVec2& origin,
                                 const AtlasRow& row, size_t column) {
  const auto pitch = static_cast<float>(layout.cells.cell);
  const float gap = gap_of(ui, layout.cells);
  const float x = origin.x + layout.labels + static_cast<float>(column) * pitch;
  const float y = std::round(origin.y + static_cast<float>(row.y));
  return {x, y, x + pitch - gap, y + static_cast<float>(layout.cells.tall) - gap};
}

std::vector<AtlasPanel::Cell> AtlasPanel::visible_cells(const Ui& ui, const Layout& layout,
                                                        const ImVec2& origin,
                                                        const ScreenRect& area,
                                                        const Scene& scene) {
  const AtlasCells& atlas = *scene.atlas;
  const auto tall = static_cast<float>(layout.cells.tall);
  const float line_height = ui.fonts.secondary->FontSize;
  float free = area.y0 - line_height;
  std::vector<Cell> cells;
  for (size_t i = layout.cells.row_at(static_cast<double>(area.y0 - origin.y));
       i < layout.cells.rows.size(); ++i) {
    const AtlasRow& row = layout.cells.rows[i];
    const float y = std::round(origin.y + static_cast<float>(row.y));
    if (y >= area.y1) break;
    const AtlasLine& line = atlas.lines[row.line];
    const float label = std::max(area.y0, y + (tall - line_height) / 2);
    if (!atlas.sorted && label >= free) {
      put_fitting(ui, ui.fonts.secondary, origin.x + layout.labels - ui.px(6), label,
                  layout.labels - ui.px(4), ui.theme.secondary, row_label(atlas, row),
                  Align::right);
      free = label + line_height;
    }
    for (size_t c = 0; c < row.count; ++c) {
      const AtlasHead& head = line.heads[row.first + c];
      if (!head.shown) continue;
      cells.push_back({&head, find(scene.tiles, SketchRequest{head.id}),
                       cell_rect(ui, layout, origin, row, c)});
      seen_.push_back(head.id);
      ui.labels.add(cell_label(line.label, head), cells.back().rect);
    }
  }
  return cells;
}

void AtlasPanel::draw_cells(const Ui& ui, const ScreenRect& whole, const Scene& scene,
                            PanelRequests& requests) {
  const Layout layout = fit(ui, whole, scene);
  content_ = layout.content;
  const ScreenRect area{whole.x0, whole.y0 + layout.heads, whole.x1, whole.y1};
  ImGui::SetCursorScreenPos({area.x0, area.y0});
  ImGui::BeginChild(
      "cells", {area.width(), area.height()}, false,
      ImGuiWindowFlags_NoNav | (ImGui::GetIO().KeyCtrl ? ImGuiWindowFlags_NoScrollWithMouse : 0));
  if (ImGui::IsWindowHovered() && ImGui::GetIO().KeyCtrl && ImGui::GetIO().MouseWheel != 0) {
    zoom_ = std::clamp(zoom_ * std::exp2(ImGui::GetIO().MouseWheel / 4), 0.125f, 8.0f);
  }
  const auto cell = static_cast<float>(layout.cells.cell);
  const auto height = static_cast<float>(layout.cells.height);
  const float columns = layout.labels + static_cast<float>(layout.cells.columns) * cell;
  const ImVec2 size{std::max(columns, area.width() - ImGui::GetStyle().ScrollbarSize),
                    std::max(height, area.height())};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton("heads", size) && !boxing_;
  const bool hovered = ImGui::IsItemHovered();
  ui.labels.add("Atlas/Area", area);
  drag_box(ui, layout, origin, scene, requests);
  take_keys(layout.cells, area, scene, requests);
  const std::vector<Cell> cells = visible_cells(ui, layout, origin, area, scene);
  if (layout.content == Content::thumbnails) draw_thumbnails(ui, cells, area, scene);
  if (layout.content == Content::classes) draw_classes(ui, cells);
  if (layout.content == Content::numbers) draw_numbers(ui, cells, scene);
  if (scene.atlas->sorted) draw_names(ui, cells, scene);
  draw_marks(ui, cells, scene);
  const bool scrolling = is_scrolling(scene, requests);
  if (!hovered) preview_.reset();
  if (hovered && scrolling) {
    requests.preview = preview_;
  } else if (hovered && !boxing_) {
    point_at(ui, cells, clicked, scene, requests);
  }
  draw_cursor(ui, cells, scene, requests);
  ImGui::EndChild();
  if (!scene.atlas->sorted) {
    draw_head_numbers(ui, layout.cells, whole, origin.x + layout.labels, *scene.atlas);
  }
}

void AtlasPanel::draw_thumbnails(const Ui& ui, const std::vector<Cell>& cells,
                                 const ScreenRect& area, const Scene& scene) {
  if (cells.empty()) return;
  textures_.begin(static_cast<int64_t>(cells.size()), cells[0].rect.width(), scene.state.pool,
                  thumbnail_scale(scene.state));
  layer_.quads.clear();
  for (const Cell& cell : cells) {
    if (!cell.sketch) continue;
    const SketchTextures::Place at = textures_.place(cell.head->id, cell.sketch);
    const ScreenRect& r = cell.rect;
    layer_.quads.push_back({r.x0,
                            r.y0,
                            r.x1,
                            r.y1,
                            static_cast<float>(at.col),
                            static_cast<float>(at.row),
                            static_cast<float>(at.col + at.cols),
                            static_cast<float>(at.row + at.rows),
                            {}});
  }
  ViewState plain = scene.state;
  plain.other.reset();
  const ColourScale scale(head_colours(scene.state), ScaleKind::log2, SketchTextures::kRange);
  gl::MapColours colours = painter_colours(plain, scale, 1, ui.theme);
  colours.texels_are_log2 = true;
  colours.use_mean = false;
  layer_.add_grid(textures_.grid(), colours, scale.map(), area);
}

void AtlasPanel::draw_classes(const Ui& ui, const std::vector<Cell>& cells) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Cell& cell : cells) {
    if (!cell.sketch) continue;
    const ScreenRect& r = cell.rect;
    const HeadClass which = cell.sketch->head_class;
    draw.AddRectFilled(
        {r.x0, r.y0}, {r.x1, r.y1},
        which == HeadClass::undefined ? ui.theme.masked : to_u32(class_colour(which)));
  }
}

void AtlasPanel::draw_numbers(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene) {
  const HeadField* const field = find_head_field(scene.state.atlas.metric);
  const ColourScale scale = metric_scale(scene);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Cell& cell : cells) {
    const ScreenRect& r = cell.rect;
    if (!cell.sketch) continue;
    const double number = cell.sketch->number(*field);
    const bool known = !std::isnan(number);
    const Rgb colour = scale.colour(number);
    draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, known ? to_u32(colour) : ui.theme.masked);
    if (r.width() < ui.px(kNumberedCell)) continue;
    const ImU32 ink = !known            ? ui.theme.secondary
                      : is_dark(colour) ? IM_COL32(255, 255, 255, 230)
                                        : IM_COL32(0, 0, 0, 220);
    put_text(ui, ui.fonts.secondary, (r.x0 + r.x1) / 2,
             (r.y0 + r.y1 - ui.fonts.secondary->FontSize) / 2, ink, number_text(number),
             Align::centre);
  }
}

/// Below the cells of a sorted atlas: the heads' names, and the numbers that they are sorted by.
void AtlasPanel::draw_names(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene) {
  const HeadField* const field = find_head_field(scene.state.atlas.sort);
  ImFont* const font = ui.fonts.secondary;
  for (const Cell& cell : cells) {
    const float middle = (cell.rect.x0 + cell.rect.x1) / 2, y = cell.rect.y1 + ui.px(1);
    put_text(ui, font, middle, y, ui.theme.text, short_name(cell.head->name), Align::centre);
    if (!cell.sketch || field == nullptr) continue;
    put_text(ui, font, middle, y + font->FontSize, ui.theme.secondary,
             number_text(cell.sketch->number(*field)), Align::centre);
  }
}

/// Marks heads that are not there yet or will not come, and outlines those that are looked at.
void AtlasPanel::draw_marks(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Cell& cell : cells) {
    const ScreenRect& r = cell.rect;
    if (!cell.sketch) draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.raised);
    if (!cell.sketch && !scene.tiles.problem(SketchRequest{cell.head->id}).empty()) {
      draw.AddLine({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.problem);
      draw.AddLine({r.x0, r.y1}, {r.x1, r.y0}, ui.theme.problem);
    }
    const bool framed = r.width() >= ui.px(kFramedCell);
    if (!framed && !cell.head->selected && scene.atlas->selected > 0) {
      // A frame would hide a small cell: the others are faint.
      draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, faded(ui.theme.pane, 0.7f));
    }
    if (framed && cell.head->selected) {
      // Drawn inside, so that the outlines of A and B stay to be seen.
      draw.AddRect({r.x0 + ui.px(1), r.y0 + ui.px(1)}, {r.x1 - ui.px(1), r.y1 - ui.px(1)},
                   ui.theme.window, 0, 0, ui.px(4));
      draw.AddRect({r.x0 + ui.px(1), r.y0 + ui.px(1)}, {r.x1 - ui.px(1), r.y1 - ui.px(1)},
                   ui.theme.text, 0, 0, ui.px(1));
      const float corner = std::min(ui.px(9), r.width() / 2);
      draw.AddTriangleFilled({r.x1 - corner, r.y0}, {r.x1, r.y0}, {r.x1, r.y0 + corner},
                             ui.theme.text);
    }
    if (cell.head->id == scene.locked) {
      draw.AddRect({r.x0 - ui.px(1), r.y0 - ui.px(1)}, {r.x1 + ui.px(1), r.y1 + ui.px(1)},
                   ui.theme.query, 0, 0, ui.px(2));
    }
    if (scene.other.head && cell.head->id == *scene.other.head) {
      draw.AddRect({r.x0 + ui.px(1), r.y0 + ui.px(1)}, {r.x1 - ui.px(1), r.y1 - ui.px(1)},
                   ui.theme.side_b, 0, 0, ui.px(2));
    }
  }
}

/// True while heads pass by under the mouse: none of them is pointed at.
bool AtlasPanel::is_scrolling(const Scene& scene, PanelRequests& requests) {
  const float scroll = ImGui::GetScrollY();
  if (scroll != scroll_) scrolled_at_ = scene.now;
  scroll_ = scroll;
  if (!scrolled_at_) return false;
  const double rest = *scrolled_at_ + kScrollRest - scene.now;
  if (rest > 0) {
    requests.again_in = std::min(rest, requests.again_in.value_or(rest));
    return true;
  }
  scrolled_at_.reset();
  return false;
}

std::string AtlasPanel::text_of(const Cell& cell, const Scene& scene) {
  const std::string text = atlas_text(*cell.head, cell.sketch.get());
  const std::string problem = scene.tiles.problem(SketchRequest{cell.head->id});
  return problem.empty() ? text : text + "\n" + one_line(problem);
}

/// The head under the mouse: its numbers, and its map in the other panes.
void AtlasPanel::point_at(const Ui& ui, const std::vector<Cell>& cells, bool clicked,
                          const Scene& scene, PanelRequests& requests) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto at = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) {
    return cell.rect.contains(mouse.x, mouse.y);
  });
  preview_.reset();
  if (at == cells.end()) return;
  const ImVec2 moved = ImGui::GetIO().MouseDelta;
  if (cursor_ && (moved.x != 0 || moved.y != 0)) {
    cursor_ = at->head->id;
    by_keys_ = false;
  }
  if (by_keys_ && cursor_ && !clicked && !ImGui::IsMouseClicked(1)) return;
  const bool makes_other = ImGui::IsMouseClicked(1) && !scene.other.of_second;
  // Side B stays B: what is seen as A is another head, whose difference from it is shown.
  if (!makes_other && at->head->id != scene.other.head) preview_ = at->head->id;
  const ScreenRect& r = at->rect;
  ImGui::GetWindowDrawList()->AddRect({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.text, 0, 0, ui.px(1));
  tooltip(text_of(*at, scene));
  requests.preview = preview_;
  if (clicked) click_on(*at->head, scene, requests);
  // Of a second capture, side B is chosen in the toolbar.
  if (makes_other) requests.act(action::SetOther{at->head->id});
}

void AtlasPanel::draw_legend_of(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                PanelRequests& requests) const {
  const ScreenRect bar{rect.x0, rect.y0, std::min(rect.x1, rect.x0 + ui.px(280)),
                       rect.y0 + ui.px(kLegendHeight)};
  const AtlasCells& atlas = *scene.atlas;
  const bool waits = atlas.sketched < atlas.heads && scene.source.busy;
  if (content_ == Content::numbers) {
    const HeadField* const field = find_head_field(scene.state.atlas.metric);
    const std::string caption = std::string(field->name) + ": " + std::string(field->long_name);
    if (waits && !atlas.range) {
      draw_no_legend(ui, bar, caption, rect.width(),
                     "the heads' numbers are being computed \u2026");
    } else {
      draw_legend(ui, bar, metric_scale(scene), caption, rect.width(), "no head has it");
    }
    return;
  }
  const std::string what = scene.state.pool == Pool::max ? "largest" : "mean";
  const SketchCells cells = SketchCells::of(scene.geometry.rows, scene.geometry.cols);
  const std::string of = atlas.exact == atlas.heads ? "" : ", sampled";
  const std::string caption =
      content_ == Content::classes
          ? "classes of heads"
          : fmt::format("{} weight of {}\u00d7{} entries{}", what, cells.height, cells.width, of);
  if (atlas.sketched == 0) {
    draw_no_legend(ui, bar, caption, rect.width(),
                   waits ? "thumbnails are being computed \u2026" : "no head has a thumbnail");
  } else if (content_ == Content::classes) {
    draw_class_legend(ui, rect, scene, requests);
  } else {
    draw_range_legend(ui, bar, head_colours(scene.state), caption, rect.width(),
                      {"each head's lowest 1 %", "its highest 1 %"});
  }
}

}  // namespace attnscope
