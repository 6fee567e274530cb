#include "viewer/panels/map/magnifier.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/base/number_words.h"
#include "core/products/film_time.h"
#include "io/pictures/canvas.h"
#include "viewer/panels/data_marks.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/map/cell_numbers.h"
#include "viewer/panels/map/mask_overlay.h"
#include "viewer/panels/map/matrix_panel.h"
#include "viewer/view/comparison.h"
#include "viewer/view/query_words.h"
#include "viewer/view/value_range.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {
namespace {

constexpr float kCellWidth = 36, kCellHeight = 20, kPad = 8, kPatch = 76, kFromMouse = 20;
constexpr float kLine = 18;
/// Of a small window's sides: the map beside it is to be seen.
constexpr float kMostShare = 0.75f;
/// Rows of cells below which no number is legible.
constexpr float kLeastNumber = 15;
/// Tokens along a side of a patch, of which its own is in the middle.
constexpr int64_t kPatchTokens = 5;

std::optional<LatentCoord> place_in_video(const Scene& scene, bool key) {
  if (scene.pictures.empty()) return std::nullopt;
  const MapPoint& point = scene.readout->point;
  return (key ? scene.keys : scene.queries).grid->coord(key ? point.key : point.query);
}

/// "B: ", "A − B: ": whose number is shown; empty where there is A alone.
std::string whose_number(const Scene& scene, bool of_other) {
  if (of_other || scene.other.shown) return "B: ";
  if (scene.state.against()) return difference_sign(scene.state.other->difference) + ": ";
  return scene.other.state ? "A: " : "";
}

}  // namespace

struct Magnifier::Look {
  const Magnified& seen;
  ColourScale scale;
  const ViewState& state;
  ScreenRect entries;
  float width = 0, height = 0;  ///< of a cell
  CellNotation notation;
  bool has_own_range = false;  ///< of colours
  bool has_mask = false;
  std::optional<double> most_lost = {};  ///< as veil_colour() takes it

  ScreenRect cell(int64_t down, int64_t across) const {
    const float x = entries.x0 + static_cast<float>(across) * width;
    const float y = entries.y0 + static_cast<float>(down) * height;
    return {x, y, x + width, y + height};
  }
};

/// One entry as the map shows it.
void Magnifier::draw_cell(const Ui& ui, const Scene& scene, const Look& look, int64_t down,
                          int64_t across) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const int64_t row = look.seen.first_row() + down, col = look.seen.first_col() + across;
  if (row < 0 || col < 0 || row >= scene.geometry.rows || col >= scene.geometry.cols) return;
  const ScreenRect r = look.cell(down, across);
  const std::optional<float> known = look.seen.value(down, across);
  if (!known) {
    draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, ui.theme.raised);
    return;
  }
  const double value = static_cast<double>(*known) * scene.factor;
  const bool masked = std::isinf(value) && value < 0, missing = std::isnan(value);
  const bool nothing = missing || (value <= 0 && look.scale.kind() == ScaleKind::log2);
  ImU32 ground = nothing ? ui.theme.nothing : to_u32(look.scale.colour(value));
  if (masked) ground = ui.theme.masked;
  draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, ground);
  const bool dropped = look.has_mask && !scene.mask->keeps(row, col);
  ImU32 top = ground;
  if (dropped) {
    top = veil_colour(ui.theme, *scene.mask, scene.mask->block_at(row, col), look.most_lost);
    draw.AddRectFilled({r.x0, r.y0}, {r.x1, r.y1}, top);
  }
  const bool evicted =
      masked && scene.call.is_evicted(scene.placed.rows->token(row), scene.placed.keys->token(col));
  if (missing || evicted) {
    draw_hatch(ui, draw, r, r.x0);
  } else if (masked) {
    draw_dots(ui, draw, {r.x0, r.y0}, r.width(), r.height());
  } else if (look.notation.characters > 0 && look.seen.number(down, across)) {
    ImFont* const font = ui.fonts.mono;
    put_text(ui, font, (r.x0 + r.x1) / 2, (r.y0 + r.y1 - font->FontSize) / 2, ink_on(top),
             cell_text(value, look.notation), Align::centre);
  }
}

void Magnifier::draw_entries(const Ui& ui, const Scene& scene, const Look& look) const {
  for (int64_t down = 0; down < kMagnified; ++down) {
    for (int64_t across = 0; across < kMagnified; ++across) {
      draw_cell(ui, scene, look, down, across);
    }
  }
  const ScreenRect middle = look.cell(kMagnified / 2, kMagnified / 2);
  mark_frames(ui, {&middle, 1}, ui.theme.plain_mark);
}

/// The two tokens, the entry's own number, and how well the others are known.
void Magnifier::tell(const Ui& ui, const Scene& scene, const Look& look, float left) const {
  const PointReadout& r = *scene.readout;
  const float width = look.entries.x1 - left, line = ui.px(kLine);
  float y = look.entries.y1 + ui.px(kPad);
  const auto say = [&](ImFont* font, ImU32 colour, const std::string& text) {
    put_fitting(ui, font, left, y, width, colour, text);
    y += line;
  };
  ImFont* const small = ui.fonts.secondary;
  say(small, ui.theme.query, "q " + token_text(scene.queries, r.point.query));
  say(small, ui.theme.key, "k " + token_text(scene.keys, r.point.key));
  const std::optional<float> middle = look.seen.number(kMagnified / 2, kMagnified / 2);
  std::string number = "\u2026";
  if (middle) {
    const double value = static_cast<double>(*middle) * scene.factor;
    number = std::isfinite(value) ? number_words(value, 4)
             : std::isnan(value)  ? "not in the file"
                                  : "masked";
  }
  say(ui.fonts.mono, ui.theme.text, whose_number(scene, look.seen.of_other) + number);
  const SeenExactness known{look.seen.complete,
                            look.seen.exact,
                            0,
                            look.seen.coarsest,
                            look.seen.complete && look.seen.coarsest == 0 ? 1 : 0,
                            !scene.tiles_problem.empty()};
  std::string how = resolution_text(known, scene.call, look.state.pool);
  if (scene.call.block > 1) {
    how += fmt::format(" \u00b7 {1} of {0}\u00d7{0}", scene.call.block, pool_name(look.state.pool));
  }
  if (look.notation.power) how += " \u00b7 numbers " + times_power_of_ten(*look.notation.power);
  say(small, ui.theme.secondary, how);
  if (!look.has_own_range) return;
  const ValueRange& range = look.scale.range();
  say(small, ui.theme.secondary,
      "colours " + number_words(range.low, 2) + " \u2026 " + number_words(range.high, 2));
}

/// The colours of single entries, which are far below the largest of many that an overview shows:
/// over the range that they have themselves; nothing where there is none.
std::optional<ColourScale> own_scale(const Magnified& seen, const ViewState& state,
                                     const Scene& scene) {
  MapTile tile;
  tile.id = tile_of(state, 0, 0, 0);
  tile.rows = tile.cols = kMagnified;
  tile.exact = true;
  for (const auto& value : seen.values) {
    tile.max.push_back(value.value_or(std::numeric_limits<float>::quiet_NaN()));
  }
  tile.mean = tile.max;
  const auto side = static_cast<double>(kMagnified);
  const std::shared_ptr<const MapTile> tiles[] = {std::make_shared<const MapTile>(std::move(tile))};
  const auto histogram = ValueHistogram::of(tiles, {0, side, 0, side}, state.pool);
  if (histogram.empty()) return std::nullopt;
  const int64_t keys = scene.call.keys.tokens();
  return shown_scale(state, histogram, keys, shown_most(state, scene.call.score, keys));
}

/// A token and those around it in the middle picture of its latent frame; false where there is
/// none (yet).
bool Magnifier::draw_patch(const Ui& ui, const Scene& scene, bool key, const ScreenRect& rect,
                           PanelRequests& requests) {
  const std::optional<LatentCoord> at = place_in_video(scene, key);
  if (!at) return false;
  const TokenGrid& grid = *(key ? scene.keys : scene.queries).grid;
  const auto moments = film_moments(grid.frames(), scene.pictures, FilmTime::latent);
  const int64_t picture = moments[static_cast<size_t>(at->t)].picture;
  if (picture < 0) return false;
  const int64_t high = std::min(kPatchTokens, grid.height());
  const int64_t wide = std::min(kPatchTokens, grid.width());
  const int64_t longest = std::max(grid.height(), grid.width());
  const auto wanted = static_cast<int64_t>(std::ceil(rect.width() / static_cast<float>(wide)));
  const int64_t side = std::clamp<int64_t>(kMostFrameSide / longest, 1, wanted);
  const FrameRequest request{picture, static_cast<int>(grid.width() * side),
                             static_cast<int>(grid.height() * side)};
  requests.frames.push_back(request);
  const auto frame = find(scene.tiles, request);
  if (!frame || !frame->problem.empty()) return false;
  const int64_t x = std::clamp<int64_t>(at->x - wide / 2, 0, grid.width() - wide);
  const int64_t y = std::clamp<int64_t>(at->y - high / 2, 0, grid.height() - high);
  Canvas patch(static_cast<int>(wide * side), static_cast<int>(high * side), Rgb{});
  for (int row = 0; row < patch.height(); ++row) {
    const size_t from = static_cast<size_t>(y * side + row) * static_cast<size_t>(request.width) +
                        static_cast<size_t>(x * side);
    std::transform(frame->image.pixels.begin() + static_cast<std::ptrdiff_t>(from),
                   frame->image.pixels.begin() + static_cast<std::ptrdiff_t>(from) + patch.width(),
                   patch.row(row).begin(), [](uint8_t grey) {
                     return Rgb{grey, grey, grey};
                   });
  }
  gl::PictureTexture& texture = patches_[key ? 1 : 0];
  texture.resize(patch.width(), patch.height());
  texture.update(0, 0, patch);
  ImGui::GetWindowDrawList()->AddImage(
      reinterpret_cast<ImTextureID>(static_cast<intptr_t>(texture.name())), {rect.x0, rect.y0},
      {rect.x1, rect.y1});
  const float cell = rect.width() / static_cast<float>(wide);
  const float tall = rect.height() / static_cast<float>(high);
  const float left = rect.x0 + static_cast<float>(at->x - x) * cell;
  const float top = rect.y0 + static_cast<float>(at->y - y) * tall;
  const ScreenRect own{left, top, left + cell, top + tall};
  mark_frames(ui, {&own, 1}, key ? ui.theme.key_mark : ui.theme.query_mark);
  ui.labels.add(key ? "Magnifier/Key" : "Magnifier/Query", rect);
  return true;
}

void Magnifier::draw(const Ui& ui, const ScreenRect& window, bool overview, const Scene& scene,
                     PanelRequests& requests) {
  if (!scene.magnified || !scene.readout) return;
  const bool other = scene.magnified->of_other && scene.other.state;
  const ViewState& state = other ? *scene.other.state : scene.state;
  std::optional<ColourScale> own;
  if (overview && (state.against() ? state.other->range : state.range).automatic) {
    own = own_scale(*scene.magnified, state, scene);
  }
  const float pad = ui.px(kPad), side = static_cast<float>(kMagnified);
  const float below = 2 * pad + ui.px(own ? kPatch + kLine : kPatch);
  const auto cell = [&](float usual, float room) {
    return std::floor(std::min(ui.px(usual), room / side));
  };
  const float width = cell(kCellWidth, kMostShare * window.width() - 2 * pad);
  const float height = cell(kCellHeight, kMostShare * window.height() - pad - below);
  if (width < 1 || height < 1) return;
  const ImVec2 size{side * width + 2 * pad, side * height + pad + below};
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  // Right of the mouse and below it, or on the other side where that has room.
  const auto beside = [&](float at, float length, float low, float high) {
    const float from = at + ui.px(kFromMouse) + length <= high ? at + ui.px(kFromMouse)
                                                               : at - ui.px(kFromMouse) - length;
    return std::round(std::clamp(from, low, std::max(low, high - length)));
  };
  const ImVec2 at{beside(mouse.x, size.x, window.x0, window.x1),
                  beside(mouse.y, size.y, window.y0, window.y1)};
  const ScreenRect whole{at.x, at.y, at.x + size.x, at.y + size.y};
  Look look{*scene.magnified,
            own ? *own : (other ? *scene.other.scale : scene.scale),
            state,
            {at.x + pad, at.y + pad, at.x + pad + side * width, at.y + pad + side * height},
            width,
            height,
            {},
            own.has_value()};
  look.has_mask = scene.mask && scene.mask->problem.empty() && !look.seen.of_other;
  if (look.has_mask) look.most_lost = shown_loss(scene);
  if (height >= ui.px(kLeastNumber)) {
    std::vector<double> values;
    for (int64_t cell_at = 0; cell_at < kMagnified * kMagnified; ++cell_at) {
      const auto value = look.seen.number(cell_at / kMagnified, cell_at % kMagnified);
      if (value) values.push_back(static_cast<double>(*value) * scene.factor);
    }
    if (scene.call.block == 1) look.notation = cell_notation(values, room_in_cell(ui, width));
  }
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, to_vec4(ui.theme.pane));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, ui.px(1));
  ImGui::Begin("magnifier", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoNav |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing);
  ui.labels.add("Magnifier/Panel", whole);
  draw_entries(ui, scene, look);
  const float patch = ui.px(kPatch);
  float left = look.entries.x0;
  for (const bool key : {false, true}) {
    const float top = look.entries.y1 + pad;
    // A small one has room for its words alone.
    if (look.entries.width() >= ui.px(300) &&
        draw_patch(ui, scene, key, {left, top, left + patch, top + patch}, requests)) {
      left += patch + pad;
    }
  }
  tell(ui, scene, look, left);
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

}  // namespace attnscope
