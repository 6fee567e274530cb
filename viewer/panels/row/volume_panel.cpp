#include "viewer/panels/row/volume_panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/number_words.h"
#include "viewer/panels/row/line_colours.h"
#include "viewer/panels/row/line_controls.h"
#include "viewer/panels/row/line_text.h"
#include "viewer/panels/row/volume_box.h"
#include "viewer/view/row/words_view.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

/// Degrees that a pixel of dragging turns the volume by.
constexpr double kTurn = 0.4;
/// Around the volume, for the words at its edges.
constexpr float kMargin = 14;
/// Pixels that the mouse may shake in a click.
constexpr float kClickPixels = 3;
/// Narrower panes have no room for all controls in their header.
constexpr float kNarrow = 310;
/// Before the buttons that cut the volume open, where the row is so wide.
constexpr const char* kCut = "cut";
constexpr float kCaptioned = 340;
/// Where the volume would be lower, it has the place of what is told of the text.
constexpr float kLeastBesideShare = 120;
/// Of the volume's own pixels, along a side, while it moves.
constexpr int kCoarse = 2;

gl::VolumeColours volume_colours(const Theme& theme, Colormap map) {
  const auto parts = [](ImU32 colour) -> gl::VolumeColours::Colour {
    const ImVec4 of = to_vec4(colour);
    return {of.x, of.y, of.z};
  };
  return {map, parts(theme.nothing), parts(theme.masked), parts(theme.masked_dot),
          parts(theme.hatch)};
}

gl::VolumeView::Vector floats(const VolumePoint& p, double by = 1) {
  return {static_cast<float>(p.x * by), static_cast<float>(p.y * by), static_cast<float>(p.t * by)};
}

/// A look with the mouse's part of it changed.
template <typename Change>
void change_look(const Scene& scene, PanelRequests& requests, bool dragged, const Change& change) {
  VolumeLook look = scene.state.volume;
  change(look);
  if (look != scene.state.volume) requests.act(action::SetVolume{look, dragged});
}

/// A row of small controls.
struct SmallControls {
  explicit SmallControls(const Ui& ui) {
    ImGui::PushFont(ui.fonts.secondary);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  }
  ~SmallControls() {
    ImGui::PopStyleVar();
    ImGui::PopFont();
  }
  SmallControls(const SmallControls&) = delete;
  SmallControls& operator=(const SmallControls&) = delete;
};

}  // namespace

BesideButton volume_button(const Ui& ui, const std::string& pane, const ScreenRect& rect,
                           const Scene& scene, PanelRequests& requests) {
  const float width = text_size(ui.fonts.secondary, "3D").x + ui.px(16);
  const bool narrow = rect.width() < ui.px(kNarrow);
  const float x = rect.x1 - ui.px(narrow ? 12 : 8) - width;
  const SmallControls small(ui);
  ImGui::SetCursorScreenPos({x, rect.y0 + ui.px(narrow ? kHeaderHeight + 8 : 4)});
  const bool on = scene.state.volume.shown;
  if (tool_button(ui, pane + "/Volume", "3D", on, "film or volume (V)")) {
    change_look(scene, requests, false, [](VolumeLook& look) { look.shown = !look.shown; });
  }
  if (narrow) return {rect, x - ui.px(8)};
  return {{rect.x0, rect.y0, x, rect.y1}, rect.x1 - ui.px(12)};
}

/// The plane of the look, moved to the last one that the grid has.
std::optional<VolumeSlice> VolumePanel::slice_of(const VolumeLook& look) const {
  std::optional<VolumeSlice> slice = look.slice;
  if (slice) {
    slice->at = std::min(slice->at, cells_.size[static_cast<size_t>(slice->axis)] - 1);
  }
  return slice;
}

bool VolumePanel::is_too_large() const {
  return std::max({filmed_.frames(), filmed_.height(), filmed_.width()}) >
         gl::largest_volume_side();
}

/// Of a token that was not evicted.
uint8_t VolumePanel::number_of(const Scene& scene, size_t at) const {
  if (is_masked(*scene.line, at)) return VolumeCells::kMasked;
  const auto value = static_cast<double>(scene.line->values[at]);
  if (std::isnan(value)) return VolumeCells::kMissing;
  if (scale_->is_of_nothing()) return VolumeCells::kNothing;
  const double unit = scale_->unit(value * scene.factor);
  return std::isfinite(unit) ? VolumeCells::number_of(unit) : VolumeCells::kNothing;
}

void VolumePanel::take_line(const Scene& scene) {
  const Made wanted{scene.line, scene.state.product, scene.state.scale, scene.state.colormap,
                    scene.state.segment};
  if (wanted == made_ && scale_) return;
  made_ = wanted;
  filmed_ = filmed(*shown_side(scene).grid, scene.state.segment);
  scale_ = line_scale(scene, filmed_);
  if (!filmed_.has_grid() || is_too_large()) return;
  const IndexRange video = filmed_.video_range();
  evicted_ = evicted_of(scene, filmed_);
  specials_ = specials_of(*scene.line, *scale_, evicted_, video);
  cells_.size = {filmed_.frames(), filmed_.height(), filmed_.width()};
  cells_.numbers.resize(static_cast<size_t>(video.size()));
  for (size_t i = 0; i < cells_.numbers.size(); ++i) {
    const size_t at = static_cast<size_t>(video.begin) + i;
    const bool dropped = !evicted_.empty() && evicted_[at] != 0;
    cells_.numbers[i] = dropped ? VolumeCells::kEvicted : number_of(scene, at);
  }
  if (!painter_) painter_.emplace();
  painter_->upload({static_cast<int>(cells_.size[0]), static_cast<int>(cells_.size[1]),
                    static_cast<int>(cells_.size[2])},
                   cells_.numbers);
}

float VolumePanel::draw_header(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                               PanelRequests& requests) {
  const bool failed = !scene.line_problem.empty();
  // A column waits for the norms of all rows.
  const double progress =
      film_of_columns(scene.state) ? std::max(0.0, scene.source.exact_progress) : 1.0;
  const float end = pane_header(
      ui, rect, {"Volume", "", ViewPane::volume, scene.line_pending && !failed ? progress : -1.0},
      scene.state, requests);
  const BesideButton beside = volume_button(ui, "Volume", rect, scene, requests);
  draw_line_controls(ui, "Volume", beside.header, end + ui.px(8), scene, requests);
  return beside.line_end;
}

/// The plane of a frame: its picture under the numbers, or these alone.
void VolumePanel::video_button(const Ui& ui, const Scene& scene, PanelRequests& requests) const {
  ImGui::SameLine(0, ui.px(4));
  FilmLook look = scene.state.film;
  if (!tool_button(ui, "Volume/Video", "Video", look.over,
                   "the video's picture on the plane, as the film has it")) {
    return;
  }
  look.over = !look.over;
  requests.act(action::SetFilm{look});
}

/// Which plane of the slice's axis, on a line to drag along.
void VolumePanel::slice_slider(const Ui& ui, const ScreenRect& room, const Scene& scene,
                               PanelRequests& requests) const {
  const VolumeSlice slice = *slice_of(scene.state.volume);
  const int64_t extent = cells_.size[static_cast<size_t>(slice.axis)];
  ImFont* const font = ui.fonts.mono;
  const std::string name = fmt::format("{}{}", volume_axis_name(slice.axis), slice.at);
  const float label = text_size(font, fmt::format("t{}", extent)).x + ui.px(8);
  const float x0 = room.x0 + label, x1 = room.x1 - ui.px(6);
  const float y = std::round((room.y0 + room.y1) / 2);
  put_text(ui, font, room.x0, y - font->FontSize / 2, ui.theme.text, name);
  if (x1 - x0 < ui.px(24)) return;
  ImGui::SetCursorScreenPos({x0 - ui.px(6), room.y0});
  ImGui::InvisibleButton("slice", {x1 - x0 + ui.px(12), room.height()});
  mark(ui, "Volume/Slice");
  const bool held = ImGui::IsItemActive(), bright = held || ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto last = static_cast<float>(std::max<int64_t>(1, extent - 1));
  const float x = std::round(x0 + (x1 - x0) * static_cast<float>(slice.at) / last);
  draw.AddRectFilled({x0, y}, {x1, y + ui.px(1)}, ui.theme.border);
  draw.AddCircleFilled({x, y + ui.px(0.5f)}, ui.px(5), bright ? ui.theme.text : ui.theme.secondary);
  if (!held) return;
  const float share = (ImGui::GetIO().MousePos.x - x0) / (x1 - x0);
  const int64_t at = std::clamp<int64_t>(std::llround(share * last), 0, extent - 1);
  change_look(scene, requests, true, [&](VolumeLook& look) {
    look.slice = VolumeSlice{slice.axis, at};
  });
}

float VolumePanel::draw_controls(const Ui& ui, const ScreenRect& row, const Scene& scene,
                                 PanelRequests& requests) {
  const VolumeLook& look = scene.state.volume;
  const SmallControls small(ui);
  ImGui::SetCursorScreenPos({row.x0, row.y0});
  const int mode =
      segmented(ui, "Volume", {"Max", "Emission"}, static_cast<int>(look.mode),
                "the largest value along a ray, or all of them, the larger the denser");
  if (mode >= 0) {
    change_look(scene, requests, false,
                [&](VolumeLook& to) { to.mode = static_cast<VolumeMode>(mode); });
  }
  ImGui::SameLine(0, ui.px(12));
  if (row.width() >= ui.px(kCaptioned)) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    put_text(ui, ui.fonts.secondary, at.x, at.y + ui.px(2), ui.theme.secondary, kCut);
    ImGui::SetCursorScreenPos({at.x + text_size(ui.fonts.secondary, kCut).x + ui.px(6), at.y});
  }
  const int cut = segmented(ui, "Volume", {"Whole", "t", "y", "x"},
                            look.slice ? 1 + static_cast<int>(look.slice->axis) : 0,
                            "cut open by a plane of frames, rows or columns");
  if (cut >= 0) {
    change_look(scene, requests, false, [&](VolumeLook& to) {
      to.slice.reset();
      const auto axis = static_cast<size_t>(cut - 1);
      if (cut > 0) to.slice = VolumeSlice{static_cast<VolumeAxis>(axis), cells_.size[axis] / 2};
    });
  }
  const bool video =
      look.slice && look.slice->axis == VolumeAxis::t && SlicePicture::has_pictures(scene, filmed_);
  if (video) video_button(ui, scene, requests);
  const ScreenRect last = item_rect();
  if (!look.slice) return last.y1;
  ScreenRect room{last.x1 + ui.px(12), last.y0, row.x1, last.y1};
  if (room.width() < ui.px(110)) {
    room = {row.x0, last.y1 + ui.px(4), row.x1, last.y1 + ui.px(4) + last.height()};
  }
  slice_slider(ui, room, scene, requests);
  return room.y1;
}

/// Draws the picture where it is not the one that was drawn last, and shows it.
void VolumePanel::draw_picture(const ScreenRect& area, const Scene& scene,
                               PanelRequests& requests) {
  const ImVec2 unit = ImGui::GetIO().DisplayFramebufferScale;
  const int width = static_cast<int>(std::ceil(area.width() * unit.x));
  const int height = static_cast<int>(std::ceil(area.height() * unit.y));
  const auto cut = slice_of(scene.state.volume);
  if (cut && cut->axis == VolumeAxis::t) {
    plane_.take(scene, filmed_, *scale_, evicted_, cut->at, requests);
  } else {
    plane_.drop();
  }
  const Drawn wanted{made_, scene.state.volume, scene.state.theme, width, height, plane_.version()};
  const PictureRest::Draw how = rest_.next(drawn_ != wanted, turning_, scene.now);
  if (how != PictureRest::Draw::kept) {
    drawn_ = wanted;
    const int by = how == PictureRest::Draw::coarse ? kCoarse : 1;
    const int cols = (width + by - 1) / by, rows = (height + by - 1) / by;
    const VolumeLook& look = scene.state.volume;
    const double step = by / static_cast<double>(unit.x);
    gl::VolumeView view;
    view.start = floats(camera_->ray_start({0, 0}));
    view.across = floats(camera_->across(), step);
    view.down = floats(camera_->down(), step);
    view.way = floats(camera_->way());
    view.emission = look.mode == VolumeMode::emission;
    view.least = VolumeCells::least_of(look.threshold);
    if (cut) {
      view.slice_axis = cut->axis == VolumeAxis::t ? 2 : cut->axis == VolumeAxis::y ? 1 : 0;
      view.slice_at = static_cast<int>(cut->at);
    }
    painter_->draw(cols, rows, view, volume_colours(theme_of(scene.state.theme), scale_->map()),
                   plane_.name());
  }
  if (const double wait = rest_.wait(scene.now); wait >= 0) requests.draw_again_in(wait);
  const auto name = reinterpret_cast<ImTextureID>(static_cast<intptr_t>(painter_->picture()));
  // A coarse picture may have a part of a pixel more than the pane.
  const float x1 = area.x0 + static_cast<float>(width) / unit.x;
  const float y1 = area.y0 + static_cast<float>(height) / unit.y;
  const float by = std::round(static_cast<float>(width) / static_cast<float>(painter_->width()));
  const float u = static_cast<float>(width) / (by * static_cast<float>(painter_->width()));
  const float v = static_cast<float>(height) / (by * static_cast<float>(painter_->height()));
  ImGui::GetWindowDrawList()->AddImage(name, {area.x0, area.y0}, {x1, y1}, {0, 1}, {u, 1 - v});
}

void VolumePanel::draw_box(const Ui& ui, const ScreenRect& area, const Scene& scene,
                           bool behind) const {
  const VolumeBox box(ui, area, *camera_, cells_.size);
  box.draw_edges(behind);
  if (behind) return;
  if (const auto slice = slice_of(scene.state.volume)) box.draw_plane(*slice);
  box.draw_axes();
}

/// The tokens that the line belongs to, in a volume of words the query that is picked; and the
/// other end of the entry under the mouse.
void VolumePanel::mark_cells(const Ui& ui, const ScreenRect& area, const Scene& scene) const {
  const bool words = is_of_words(scene);
  if (!scene.call.same_tokens() && !words) return;
  const VolumeBox box(ui, area, *camera_, cells_.size);
  const bool reverse = scene.line->request.reverse;
  if (scene.readout) {
    const int64_t other = reverse ? scene.readout->point.query : scene.readout->point.key;
    if (const auto at = filmed_.coord(other)) {
      box.mark_cell(*at, reverse ? ui.theme.query : ui.theme.key);
    }
  }
  const bool keys = words ? scene.state.reverse : reverse;
  const std::vector<int64_t> picked =
      scene.state.query ? scene.state.query->tokens : std::vector<int64_t>();
  for (const int64_t token : words ? picked : scene.line->request.tokens) {
    if (const auto at = filmed_.coord(token)) {
      box.mark_cell(*at, keys ? ui.theme.key : ui.theme.query);
    }
  }
}

/// Reads the cell under the mouse; a click picks it.
void VolumePanel::point_at(const ScreenRect& area, const Scene& scene, bool clicked,
                           PanelRequests& requests) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const VolumeLook& look = scene.state.volume;
  const auto cell =
      seen_cell(cells_,
                camera_->ray_start({static_cast<double>(mouse.x - area.x0),
                                    static_cast<double>(mouse.y - area.y0)}),
                camera_->way(), VolumeCells::least_of(look.threshold), slice_of(look));
  if (!cell) return;
  const int64_t token = filmed_.index_of(*cell);
  const int64_t chosen = scene.line->request.tokens.front();
  // A word's volume shows the side that queries are picked on.
  const bool picks = scene.call.same_tokens() || is_of_words(scene);
  if (clicked && picks) requests.act(action::PickQuery{{{token}}});
  requests.hovered =
      scene.line->request.reverse ? MapPoint{token, chosen} : MapPoint{chosen, token};
}

void VolumePanel::take_mouse(const Ui& ui, const ScreenRect& area, const Scene& scene,
                             PanelRequests& requests) {
  ImGui::SetCursorScreenPos({area.x0, area.y0});
  const bool clicked = ImGui::InvisibleButton("volume", {area.width(), area.height()});
  mark(ui, "Volume/Cells");
  const ImGuiIO& io = ImGui::GetIO();
  const bool held = ImGui::IsItemActive(), hovered = ImGui::IsItemHovered();
  const bool turned_before = turning_;
  if (held && ImGui::IsMouseDragging(0, kClickPixels * ui.scale)) turning_ = true;
  if (!held) turning_ = false;
  if (turning_) {
    // From where the button went down, so that nothing of the way is lost.
    const ImVec2 moved = turned_before ? io.MouseDelta : ImGui::GetMouseDragDelta(0, 0);
    change_look(scene, requests, true, [&](VolumeLook& look) {
      look = turned(look, look.azimuth - kTurn * static_cast<double>(moved.x / ui.scale),
                    look.elevation + kTurn * static_cast<double>(moved.y / ui.scale), look.zoom);
    });
  } else if (hovered) {
    if (io.MouseWheel != 0) {
      change_look(scene, requests, true, [&](VolumeLook& look) {
        look = turned(look, look.azimuth, look.elevation,
                      look.zoom * std::exp2(static_cast<double>(io.MouseWheel) / 4));
      });
    }
    point_at(area, scene, clicked && !turned_before, requests);
  }
}

void VolumePanel::draw_volume(const Ui& ui, const ScreenRect& area, const Scene& scene,
                              PanelRequests& requests) {
  camera_.emplace(cells_.size, scene.state.volume, static_cast<double>(area.width()),
                  static_cast<double>(area.height()), static_cast<double>(ui.px(kMargin)));
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.PushClipRect({area.x0, area.y0}, {area.x1, area.y1}, true);
  draw_box(ui, area, scene, true);
  draw_picture(area, scene, requests);
  draw_box(ui, area, scene, false);
  mark_cells(ui, area, scene);
  draw.PopClipRect();
  take_mouse(ui, area, scene, requests);
}

/// Where on the colours the threshold stands, to be dragged along the bar.
void VolumePanel::threshold_mark(const Ui& ui, const ScreenRect& bar, const Scene& scene,
                                 PanelRequests& requests) const {
  const double threshold = scene.state.volume.threshold;
  const float x = std::round(bar.x0 + bar.width() * static_cast<float>(threshold));
  ImGui::SetCursorScreenPos({bar.x0 - ui.px(6), bar.y0 - ui.px(3)});
  ImGui::InvisibleButton("threshold", {bar.width() + ui.px(12), bar.height() + ui.px(6)});
  mark(ui, "Volume/Threshold");
  const bool held = ImGui::IsItemActive(), bright = held || ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({bar.x0, bar.y0}, {x, bar.y1}, faded(ui.theme.pane, 0.78f));
  draw.AddRectFilled({x - ui.px(1), bar.y0 - ui.px(3)}, {x + ui.px(1), bar.y1 + ui.px(3)},
                     bright ? ui.theme.text : ui.theme.secondary);
  if (bright) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  if (!held) return;
  const float share = (ImGui::GetIO().MousePos.x - bar.x0) / bar.width();
  change_look(scene, requests, true, [&](VolumeLook& look) {
    look.threshold = static_cast<double>(std::clamp(share, 0.0f, 1.0f));
  });
}

/// The legend, and what a colour of the volume means.
void VolumePanel::draw_below(const Ui& ui, const ScreenRect& rect, const std::string& share,
                             const Scene& scene, PanelRequests& requests) {
  const VolumeLook& look = scene.state.volume;
  const std::string caption = line_unit(scene) + ", " +
                              std::string(scale_kind_name(scale_->kind())) + " \u00b7 " +
                              exactness_text(scene) + ", one range for all frames";
  const float width = std::min(ui.px(360), rect.width());
  const ScreenRect legend{rect.x0, rect.y0, rect.x0 + width, rect.y0 + ui.px(kLegendHeight)};
  draw_legend(ui, legend, *scale_, caption, rect.width(), nothing_text(specials_));
  std::string how = look.mode == VolumeMode::maximum
                        ? "the largest value along each ray"
                        : "all values along each ray, the larger the denser";
  if (!scale_->is_of_nothing()) {
    // Where draw_legend() has its bar.
    const float top = std::round(legend.y0 + ui.px(20));
    threshold_mark(ui, {legend.x0, top, legend.x1, top + ui.px(10)}, scene, requests);
    if (look.threshold > 0) how += ", from " + number_words(scale_->value_at(look.threshold));
  }
  if (plane_.name() != 0) how += "; the plane has the video's picture";
  if (!plane_.problem().empty()) how = "no picture on the plane: " + plane_.problem();
  const float below = legend.y1 + ui.px(2);
  put_fitting(ui, ui.fonts.secondary, rect.x0, below, rect.width(), ui.theme.secondary, how);
  put_fitting(ui, ui.fonts.secondary, rect.x0, below + ui.px(18), rect.width(), ui.theme.secondary,
              share);
  if (look.slice) draw_swatches(ui, rect.x0, below + ui.px(18), rect.width(), specials_);
}

/// Why there is no row to show; false: there is one.
bool VolumePanel::draw_no_line(const Ui& ui, const ScreenRect& room, float line_end,
                               const Scene& scene) {
  if (!scene.line_problem.empty()) {
    put_problem(
        ui, "Volume", room,
        film_of_columns(scene.state) ? "This column cannot be shown" : "This row cannot be shown",
        scene.line_problem);
    return true;
  }
  if (const auto against = scene.state.against(); against && is_signed(against->how)) {
    put_problem(
        ui, "Volume", room, "A difference of either sign has no volume",
        "a ray cannot tell what is below 0 from what is empty: take |A \u2212 B|, or the film");
    return true;
  }
  const std::string why = no_line_text(scene);
  if (why.empty()) return false;
  put_fitting(ui, ui.fonts.secondary, room.x0, room.y0, line_end - room.x0, ui.theme.secondary,
              why);
  return true;
}

/// Why the row is no volume that can be drawn; false: it is one.
bool VolumePanel::draw_no_volume(const Ui& ui, const ScreenRect& room) const {
  if (!filmed_.has_grid()) {
    put_fitting(ui, ui.fonts.secondary, room.x0, room.y0, room.width(), ui.theme.secondary,
                "no grid is known of these tokens: the film has them as a list");
    return true;
  }
  if (is_too_large()) {
    put_problem(ui, "Volume", room, "This volume cannot be drawn",
                fmt::format("a grid of {}x{}x{}: the graphics card takes volumes of at most {} "
                            "cells along a side",
                            filmed_.frames(), filmed_.height(), filmed_.width(),
                            gl::largest_volume_side()));
    return true;
  }
  return false;
}

void VolumePanel::draw(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                       PanelRequests& requests) {
  begin_pane(ui, "volume", rect);
  const float line_end = draw_header(ui, rect, scene, requests);
  const ScreenRect inner{rect.x0 + ui.px(12), rect.y0 + ui.px(kHeaderHeight + 10),
                         rect.x1 - ui.px(12), rect.y1 - ui.px(8)};
  if (!draw_no_line(ui, inner, line_end, scene)) {
    take_line(scene);
    draw_chosen_line(ui, "Volume", {inner.x0, inner.y0, line_end, inner.y0},
                     chosen_line_text(scene), how_text(scene) + " \u00b7 drag turns", scene,
                     requests);
    const ScreenRect room{inner.x0, inner.y0 + ui.px(24), inner.x1, inner.y1};
    if (!draw_no_volume(ui, room)) draw_all(ui, room, scene, requests);
  }
  end_pane();
}

/// Controls, volume and legend.
void VolumePanel::draw_all(const Ui& ui, const ScreenRect& room, const Scene& scene,
                           PanelRequests& requests) {
  const float under = draw_controls(ui, room, scene, requests);
  // Beside a plane its swatches have the place.
  const bool cut = scene.state.volume.slice.has_value();
  const float base = kLegendHeight + 22;
  const bool low = room.y1 - under < ui.px(4 + base + kSwatchHeight + kLeastBesideShare);
  const std::string share = cut || low ? "" : share_text(scene, filmed_);
  const float lines = base + (cut || !share.empty() ? kSwatchHeight : 0);
  const ScreenRect area{room.x0, under + ui.px(4), room.x1, room.y1 - ui.px(lines)};
  if (area.height() < ui.px(48)) return;
  draw_volume(ui, area, scene, requests);
  draw_below(ui, {room.x0, area.y1 + ui.px(4), room.x1, room.y1}, share, scene, requests);
}

}  // namespace attnscope
