#include "viewer/panels/atlas_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kLeastHeadCell = 14;
constexpr float kMostHeadCell = 96;
constexpr float kSortedCell = 44;  ///< of a sorted atlas, which has no columns to fit
constexpr float kHeadGap = 2;      ///< between cells
/// Seconds from the last turn of the wheel until what came under the mouse is shown.
constexpr double kScrollRest = 0.25;
constexpr float kNumberedCell = 40;  ///< from this on a cell's number is printed in it
/// Values that a colour range is chosen from.
constexpr size_t kMostValues = size_t{1} << 15;

constexpr float kLeastField = 80, kMostField = 320;

const char* const kThumbnails = "thumbnails";
const char* const kLayers = "layers";

std::vector<std::string> with_first(const char* first) {
  std::vector<std::string> names = atlas_metrics();
  names.insert(names.begin(), first);
  return names;
}

int place_of(const std::vector<std::string>& names, const std::string& name) {
  if (name.empty()) return 0;
  return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string label_of(const std::string& line, const AtlasHead& head) {
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

/// The colours of heads are those of maps, whatever the matrix has: a difference has others.
Colormap head_colours(const ViewState& state) {
  return parse_colormap(state.colormap).value_or(Colormap::viridis);
}

/// Of a metric over the heads that are shown.
ColourScale metric_scale(const Scene& scene) {
  const Colormap map = head_colours(scene.state);
  if (!scene.atlas->range) return ColourScale::of_nothing(map, ScaleKind::linear);
  const auto [low, high] = *scene.atlas->range;
  return ColourScale(map, ScaleKind::linear, widened_range({low, high}, ScaleKind::linear));
}

bool is_dark(Rgb c) { return 0.3 * c.r + 0.59 * c.g + 0.11 * c.b < 128; }

}  // namespace

void AtlasPanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      PanelRequests& requests) {
  begin_pane(ui, "atlas", rect);
  seen_.clear();
  draw_header(ui, rect, scene, requests);
  const float top = draw_controls(ui, rect, scene, requests);
  const float legend = ui.px(kLegendHeight + 16);
  const ScreenRect area{rect.x0 + ui.px(4), top + ui.px(4), rect.x1 - ui.px(4), rect.y1 - legend};
  const AtlasCells& atlas = *scene.atlas;
  if (!atlas.problem.empty()) {
    put_problem(ui, "Atlas", area, "The filter cannot be used", atlas.problem);
  } else if (!scene.tiles.has_sketches()) {
    put_problem(ui, "Atlas", area, "An export has no heads at a glance",
                "they are computed from Q and K: open the capture");
  } else if (!scene.call.weights) {
    put_problem(ui, "Atlas", area, "Weights of either sign",
                "heads at a glance are shares of rows, which these do not have");
  } else if (atlas.shown == 0) {
    const bool waits = atlas.sketched < atlas.heads;
    put_text(ui, ui.fonts.secondary, area.x0 + ui.px(8), area.y0 + ui.px(8), ui.theme.secondary,
             waits ? "no head passes the filter yet" : "no head passes the filter");
  } else if (area.height() > ui.px(kLeastHeadCell)) {
    draw_cells(ui, area, scene, requests);
    draw_legend_of(ui, {rect.x0 + ui.px(12), area.y1 + ui.px(8), rect.x1 - ui.px(12), rect.y1},
                   scene);
  }
  end_pane();
}

void AtlasPanel::draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                             PanelRequests& requests) {
  const AtlasCells& atlas = *scene.atlas;
  const bool has_step = !scene.call.place.unrecorded.step;
  std::string detail = has_step ? fmt::format("step {} \u00b7 ", scene.call.step) : "";
  detail += (atlas.shown < atlas.heads ? fmt::format("{} of {} heads", atlas.shown, atlas.heads)
                                       : fmt::format("{} heads", atlas.heads));
  const bool exact = atlas.exact == atlas.heads;
  detail += exact ? " \u00b7 exact" : fmt::format(" \u00b7 from {} rows", SketchCells::kMostCells);
  if (!exact && atlas.exact > 0) detail += fmt::format(", {} exact", atlas.exact);
  const int64_t wanted = scene.state.atlas.exact ? atlas.exact : atlas.sketched;
  const bool busy = scene.tiles.has_sketches() && scene.call.weights && wanted < atlas.heads;
  const double progress =
      busy ? static_cast<double>(wanted) / static_cast<double>(atlas.heads) : -1;
  pane_header(ui, rect, {"Heads", detail, ViewPane::atlas, progress}, scene.state, requests);
}

float AtlasPanel::draw_controls(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                                PanelRequests& requests) {
  const AtlasLook& look = scene.state.atlas;
  ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 6)});
  const auto set = [&](const std::function<void(AtlasLook&)>& change) {
    AtlasLook changed = look;
    change(changed);
    requests.act(action::SetAtlas{changed});
  };
  const std::vector<std::string> cells = with_first(kThumbnails);
  int taken =
      choice(ui, "Atlas", "Cells", cells, place_of(cells, look.metric), choice_width(ui, cells));
  if (taken >= 0) {
    set([&](AtlasLook& to) { to.metric = taken == 0 ? "" : cells[static_cast<size_t>(taken)]; });
  }
  const auto next = [&](float width) {
    ImGui::SameLine(0, ui.px(8));
    if (ImGui::GetCursorScreenPos().x + ui.px(width) <= rect.x1 - ui.px(4)) return;
    ImGui::NewLine();
    ImGui::SetCursorScreenPos({rect.x0 + ui.px(12), ImGui::GetCursorScreenPos().y});
  };
  const std::vector<std::string> orders = with_first(kLayers);
  const float sorts = choice_width(ui, orders);
  next(sorts + text_size(ui.fonts.secondary, "Sort").x / ui.scale + 6);
  taken = choice(ui, "Atlas", "Sort", orders, place_of(orders, look.sort), sorts);
  if (taken >= 0) {
    set([&](AtlasLook& to) { to.sort = taken == 0 ? "" : orders[static_cast<size_t>(taken)]; });
  }
  next(60);
  if (tool_button(ui, "Atlas/Exact", "Exact", look.exact, "from all rows of every head")) {
    set([&](AtlasLook& to) { to.exact = !to.exact; });
  }
  if (!look.filter.empty()) {
    next(28);
    if (tool_button(ui, "Atlas/Filter", "\u00d7", true, "show all heads again")) {
      set([](AtlasLook& to) { to.filter.clear(); });
    }
  }
  next(kLeastField);
  draw_filter(ui, rect.x1 - ui.px(12) - ImGui::GetCursorScreenPos().x, look, requests);
  return ImGui::GetItemRectMax().y;
}

/// Which heads are shown; Enter takes what was typed.
void AtlasPanel::draw_filter(const Ui& ui, float width, const AtlasLook& look,
                             PanelRequests& requests) {
  if (!typing_) {
    filter_.fill(0);
    std::copy_n(look.filter.begin(), std::min(look.filter.size(), filter_.size() - 1),
                filter_.begin());
  }
  const float field = std::max(ui.px(24), std::min(width, ui.px(kMostField)));
  ImGui::SetNextItemWidth(field);
  const std::string hint = fitting_hint("filter: layers=0-7 temporal entropy<5", field);
  const bool entered =
      ImGui::InputTextWithHint("##filter", hint.c_str(), filter_.data(), filter_.size(),
                               ImGuiInputTextFlags_EnterReturnsTrue);
  typing_ = ImGui::IsItemActive();
  mark(ui, "Atlas/Find");
  if (!entered || look.filter == filter_.data()) return;
  AtlasLook changed = look;
  changed.filter = filter_.data();
  requests.act(action::SetAtlas{changed});
}

AtlasPanel::Layout AtlasPanel::fit(const Ui& ui, float width, const AtlasCells& atlas) const {
  Layout layout;
  if (atlas.sorted) {
    layout.cell = std::max(ui.px(kLeastHeadCell), ui.px(kSortedCell) * zoom_);
    layout.columns = std::max<size_t>(1, static_cast<size_t>(width / layout.cell));
    layout.lines = (atlas.lines[0].heads.size() + layout.columns - 1) / layout.columns;
    return layout;
  }
  for (const AtlasLine& line : atlas.lines) {
    layout.columns = std::max(layout.columns, line.heads.size());
    const float label = text_size(ui.fonts.secondary, line.label).x;
    layout.labels = std::max(layout.labels, std::min(label, ui.px(96)) + ui.px(8));
  }
  const float room = (width - layout.labels) / static_cast<float>(layout.columns);
  layout.cell = std::clamp(room * zoom_, ui.px(kLeastHeadCell), ui.px(kMostHeadCell) * zoom_);
  layout.cell = std::floor(layout.cell);
  layout.lines = atlas.lines.size();
  layout.heads = ui.fonts.secondary->FontSize + ui.px(4);
  return layout;
}

std::vector<AtlasPanel::Cell> AtlasPanel::visible_cells(const Ui& ui, const Layout& layout,
                                                        const ImVec2& origin,
                                                        const ScreenRect& area,
                                                        const Scene& scene) {
  const AtlasCells& atlas = *scene.atlas;
  const auto first = static_cast<size_t>(std::max(0.0f, (area.y0 - origin.y) / layout.cell));
  std::vector<Cell> cells;
  for (size_t i = first; i < layout.lines; ++i) {
    const float y = origin.y + static_cast<float>(i) * layout.cell;
    if (y >= area.y1) break;
    const AtlasLine& line = atlas.lines[atlas.sorted ? 0 : i];
    if (!atlas.sorted) {
      put_fitting(ui, ui.fonts.secondary, origin.x + layout.labels - ui.px(6),
                  y + (layout.cell - ui.fonts.secondary->FontSize) / 2, layout.labels - ui.px(4),
                  ui.theme.secondary, line.label, Align::right);
    }
    for (size_t c = 0; c < layout.columns; ++c) {
      const size_t at = atlas.sorted ? i * layout.columns + c : c;
      if (at >= line.heads.size()) break;
      const AtlasHead& head = line.heads[at];
      if (!head.shown) continue;
      const float x = origin.x + layout.labels + static_cast<float>(c) * layout.cell;
      const float side = layout.cell - ui.px(kHeadGap);
      cells.push_back(
          {&head, line.label, scene.tiles.find_sketch(head.id), {x, y, x + side, y + side}});
      seen_.push_back(head.id);
      ui.labels.add(label_of(line.label, head), cells.back().rect);
    }
  }
  return cells;
}

/// The numbers of the heads, as many as have room; `x` is where the first column begins.
void AtlasPanel::draw_head_numbers(const Ui& ui, const Layout& layout, const ScreenRect& area,
                                   float x, const AtlasCells& atlas) {
  const auto longest = std::max_element(
      atlas.lines.begin(), atlas.lines.end(),
      [](const AtlasLine& a, const AtlasLine& b) { return a.heads.size() < b.heads.size(); });
  ImFont* const font = ui.fonts.secondary;
  float free = area.x0;
  for (size_t c = 0; c < longest->heads.size(); ++c) {
    const std::string name = std::to_string(longest->heads[c].name.head);
    const float middle = x + (static_cast<float>(c) + 0.5f) * layout.cell - ui.px(kHeadGap) / 2;
    const float half = text_size(font, name).x / 2;
    if (middle - half < free || middle + half > area.x1) continue;
    put_text(ui, font, middle, area.y0, ui.theme.secondary, name, Align::centre);
    free = middle + half + ui.px(6);
  }
}

void AtlasPanel::draw_cells(const Ui& ui, const ScreenRect& whole, const Scene& scene,
                            PanelRequests& requests) {
  const float bar = ImGui::GetStyle().ScrollbarSize;
  const Layout layout = fit(ui, whole.width() - bar, *scene.atlas);
  const ScreenRect area{whole.x0, whole.y0 + layout.heads, whole.x1, whole.y1};
  ImGui::SetCursorScreenPos({area.x0, area.y0});
  ImGui::BeginChild("cells", {area.width(), area.height()}, false,
                    ImGuiWindowFlags_NoNav | ImGuiWindowFlags_HorizontalScrollbar |
                        (ImGui::GetIO().KeyCtrl ? ImGuiWindowFlags_NoScrollWithMouse : 0));
  if (ImGui::IsWindowHovered() && ImGui::GetIO().KeyCtrl && ImGui::GetIO().MouseWheel != 0) {
    zoom_ = std::clamp(zoom_ * std::exp2(ImGui::GetIO().MouseWheel / 4), 0.5f, 8.0f);
  }
  const ImVec2 size{layout.labels + static_cast<float>(layout.columns) * layout.cell,
                    static_cast<float>(layout.lines) * layout.cell};
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const bool clicked = ImGui::InvisibleButton("heads", size);
  const bool hovered = ImGui::IsItemHovered();
  const std::vector<Cell> cells = visible_cells(ui, layout, origin, area, scene);
  if (scene.state.atlas.metric.empty()) {
    draw_thumbnails(ui, cells, area, scene);
  } else {
    draw_numbers(ui, cells, scene);
  }
  draw_marks(ui, cells, scene);
  const bool scrolling = is_scrolling(scene, requests);
  if (!hovered) preview_.reset();
  if (hovered && scrolling) {
    requests.preview = preview_;
  } else if (hovered) {
    point_at(ui, cells, clicked, scene, requests);
  }
  ImGui::EndChild();
  if (!scene.atlas->sorted) {
    draw_head_numbers(ui, layout, whole, origin.x + layout.labels, *scene.atlas);
  }
}

/// A range over all thumbnails that there are, so that colours stand still while the atlas is
/// scrolled; chosen anew when there are a quarter more of them, so that they do not flicker while
/// heads arrive.
void AtlasPanel::fit_colours(const Scene& scene) {
  const ViewState& state = scene.state;
  const AtlasCells& atlas = *scene.atlas;
  const ScaleKind scale = state.product == ViewProduct::logits ? ScaleKind::log2 : state.scale;
  const auto there = static_cast<size_t>(atlas.sketched);
  // Of another step, those that were there before are none.
  if (there < colours_.sketches) colours_.fitted.reset();
  const bool same = colours_.fitted && colours_.pool == state.pool && colours_.scale == scale &&
                    colours_.map == state.colormap;
  const bool grown = atlas.sketched == atlas.heads
                         ? there != colours_.sketches
                         : there > colours_.sketches + colours_.sketches / 4;
  if (same && !grown) return;
  const size_t each = std::max<size_t>(16, kMostValues / std::max<size_t>(1, there));
  std::vector<float> values;
  for (const AtlasLine& line : atlas.lines) {
    for (const AtlasHead& head : line.heads) {
      const auto sketch = scene.tiles.find_sketch(head.id);
      if (!sketch) continue;
      const std::vector<float>& from = state.pool == Pool::max ? sketch->max : sketch->mean;
      const size_t step = std::max<size_t>(1, from.size() / each);
      for (size_t i = 0; i < from.size(); i += step) values.push_back(from[i]);
    }
  }
  ColourChoice choice;
  choice.map = head_colours(state);
  choice.scale = scale;
  colours_ = {state.pool, scale, state.colormap, there,
              bounded_scale(ColourScale::fit(choice, values), 1)};
}

void AtlasPanel::draw_thumbnails(const Ui& ui, const std::vector<Cell>& cells,
                                 const ScreenRect& area, const Scene& scene) {
  if (cells.empty()) return;
  fit_colours(scene);
  textures_.begin(static_cast<int64_t>(cells.size()), cells[0].rect.width(), scene.state.pool);
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
  gl::MapColours colours = painter_colours(plain, *colours_.fitted, 1, ui.theme);
  colours.texels_are_log2 = true;
  colours.use_mean = false;
  layer_.add_grid(textures_.grid(), colours, colours_.fitted->map(), area);
}

void AtlasPanel::draw_numbers(const Ui& ui, const std::vector<Cell>& cells,
                              const Scene& scene) const {
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

/// Marks heads that are not there yet or will not come, and outlines those that are looked at.
void AtlasPanel::draw_marks(const Ui& ui, const std::vector<Cell>& cells, const Scene& scene) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const Cell& cell : cells) {
    const ScreenRect& r = cell.rect;
    if (!cell.sketch) draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.raised);
    if (!cell.sketch && !scene.tiles.sketch_problem(cell.head->id).empty()) {
      draw.AddLine({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.problem);
      draw.AddLine({r.x0, r.y1}, {r.x1, r.y0}, ui.theme.problem);
    }
    if (cell.head->id == scene.locked) {
      draw.AddRect({r.x0 - ui.px(1), r.y0 - ui.px(1)}, {r.x1 + ui.px(1), r.y1 + ui.px(1)},
                   ui.theme.query, 0, 0, ui.px(2));
    }
    if (scene.other_head && cell.head->id == *scene.other_head) {
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

/// The head under the mouse: its numbers, and its map in the other panes.
void AtlasPanel::point_at(const Ui& ui, const std::vector<Cell>& cells, bool clicked,
                          const Scene& scene, PanelRequests& requests) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto at = std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) {
    return cell.rect.contains(mouse.x, mouse.y);
  });
  preview_.reset();
  if (at == cells.end()) return;
  const bool makes_other = ImGui::IsMouseClicked(1) && !scene.of_two_captures;
  // Side B stays B: what is seen as A is another head, whose difference from it is shown.
  if (!makes_other && at->head->id != scene.other_head) preview_ = at->head->id;
  const ScreenRect& r = at->rect;
  ImGui::GetWindowDrawList()->AddRect({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.text, 0, 0, ui.px(1));
  std::string text = atlas_text(*at->head, at->sketch.get());
  const std::string problem = scene.tiles.sketch_problem(at->head->id);
  if (!problem.empty()) text += "\n" + one_line(problem);
  tooltip(text);
  requests.preview = preview_;
  if (clicked) requests.act(action::SelectHead{at->head->id});
  // Of a second capture, side B is chosen in the toolbar.
  if (makes_other) requests.act(action::SetOther{at->head->id});
}

void AtlasPanel::draw_legend_of(const Ui& ui, const ScreenRect& rect, const Scene& scene) const {
  const AtlasLook& look = scene.state.atlas;
  const ScreenRect bar{rect.x0, rect.y0, std::min(rect.x1, rect.x0 + ui.px(280)),
                       rect.y0 + ui.px(kLegendHeight)};
  const AtlasCells& atlas = *scene.atlas;
  const bool waits = atlas.sketched < atlas.heads && scene.source.busy;
  if (!look.metric.empty()) {
    const HeadField* const field = find_head_field(look.metric);
    const std::string caption = std::string(field->name) + ": " + std::string(field->long_name);
    if (waits && !atlas.range) {
      draw_no_legend(ui, bar, caption, rect.width(),
                     "the heads' numbers are being computed \u2026");
    } else {
      draw_legend(ui, bar, metric_scale(scene), caption, rect.width(), "no head has it");
    }
    return;
  }
  if (!colours_.fitted) return;
  const std::string what = scene.state.pool == Pool::max ? "largest" : "mean";
  const SketchCells cells = SketchCells::of(scene.geometry.rows, scene.geometry.cols);
  const std::string of = atlas.exact == atlas.heads ? "" : ", sampled";
  const std::string caption =
      fmt::format("{} weight of {}\u00d7{} entries{}", what, cells.height, cells.width, of);
  if (atlas.sketched == 0) {
    draw_no_legend(ui, bar, caption, rect.width(),
                   waits ? "thumbnails are being computed \u2026" : "no head has a thumbnail");
  } else {
    draw_legend(ui, bar, *colours_.fitted, caption, rect.width(), "every value is 0");
  }
}

}  // namespace attnscope
