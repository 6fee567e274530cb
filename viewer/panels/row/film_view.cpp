#include "viewer/panels/row/film_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/products/tokens/token_box.h"
#include "io/pictures/shader_scale.h"
#include "viewer/panels/data_marks.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/pin_mark.h"
#include "viewer/textures/tile_textures.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

constexpr float kBarHeight = 30;
/// Pixels of pictures that one frame of the window makes: some milliseconds.
constexpr int64_t kMostPixels = 600'000;
/// Of the pictures that are read ahead.
constexpr int64_t kMostAhead = int64_t{48} << 20;
/// Cells whose height and width differ by less than this are squares.
constexpr float kSquare = 0.02f;

}  // namespace

void FilmView::take(const Scene& scene, const Filmed& filmed) {
  const IndexRange video = filmed.tokens.video_range();
  const FilmTime time = scene.state.film.time;
  const TokenGrid& side = *(filmed.line->request.reverse ? scene.queries : scene.keys).grid;
  const bool of_video = video == side.video_range();
  const auto against = scene.state.against();
  const Difference how = against ? against->how : Difference::off;
  const bool same = filmed.line == line_ && video == video_ && how == content_.how &&
                    scene.pictures.size() == known_pictures_ &&
                    (content_.time == time || !content_.has_pictures);
  if (same) return;
  line_ = filmed.line;
  video_ = video;
  known_pictures_ = scene.pictures.size();
  content_ =
      film_content(*line_, filmed.tokens, of_video, scene.pictures, time, filmed.evicted, how);
  // Nothing is outlined but over pictures.
  outlined_ = content_.has_pictures ? content_.outlined(1) : 0;
  ++made_;
  upload_maps();
}

/// All moments side by side, as the numbers of the line.
void FilmView::upload_maps() {
  const auto count = static_cast<int64_t>(content_.moments.size());
  map_columns_ = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t lines = (count + map_columns_ - 1) / map_columns_;
  const int64_t columns = map_columns_ * content_.width;
  std::vector<float> texels(static_cast<size_t>(columns * lines * content_.height));
  const bool logs = content_.quantity == Quantity::weights && content_.how == Difference::off;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<float> numbers = content_.numbers_at(static_cast<size_t>(i), 1);
    auto from = numbers.begin();
    for (int64_t y = 0; y < content_.height; ++y) {
      const int64_t row = i / map_columns_ * content_.height + y;
      auto to = texels.begin() + row * columns + i % map_columns_ * content_.width;
      for (int64_t x = 0; x < content_.width; ++x, ++from, ++to) {
        *to = *from == -std::numeric_limits<float>::infinity() ? *from : texel_number(*from, logs);
      }
    }
  }
  maps_.upload(static_cast<int>(lines * content_.height), static_cast<int>(columns), texels);
}

int64_t FilmView::latent_of_slot(size_t slot) const {
  const FilmMoment& moment = content_.moments[moment_of_slot(slot)];
  return moment.part > 0.5 ? moment.next : moment.t;
}

std::string FilmView::name_of(size_t moment) const {
  return moment_name(content_.moments[moment], static_cast<int64_t>(moment), content_.time);
}

void FilmView::add_map(size_t moment, const ScreenRect& rect) {
  const auto i = static_cast<int64_t>(moment);
  const auto u = static_cast<float>(i % map_columns_ * content_.width);
  const auto v = static_cast<float>(i / map_columns_ * content_.height);
  layer_.quads.push_back({rect.x0,
                          rect.y0,
                          rect.x1,
                          rect.y1,
                          u,
                          v,
                          u + static_cast<float>(content_.width),
                          v + static_cast<float>(content_.height),
                          {}});
}

/// Room in the texture for the pictures of this frame; those that are there stay where nothing but
/// the moment differs.
void FilmView::begin_pictures(const Ui&, const Scene& scene, const Filmed& filmed, size_t slots) {
  const ScreenRect f = film_.frame(0);
  const auto pixels = [](float length) {
    return std::clamp(static_cast<int>(std::lround(length)), 1, kMostFrameSide);
  };
  const FilmLook& film = scene.state.film;
  const ColourScale& scale = filmed.scale;
  const Look look{made_,        film.mode,         content_.how,       film.opacity,
                  scene.factor, scale.range().low, scale.range().high, scale.kind(),
                  scale.map(),  pixels(f.width()), pixels(f.height()), slots};
  left_ = kMostPixels;
  if (look == look_) return;
  look_ = look;
  drawn_.assign(slots, -1);
  const auto columns = static_cast<int>(film_.per_line);
  const int lines = (static_cast<int>(slots) + columns - 1) / columns;
  pictures_.resize(columns * look.width, lines * look.height);
}

/// A moment over its picture of the video; false where that is not there (yet).
bool FilmView::draw_picture(const Ui& ui, size_t slot, size_t moment, const ScreenRect& rect,
                            const Scene& scene, const Filmed& filmed, PanelRequests& requests) {
  const int64_t picture = content_.moments[moment].picture;
  if (picture < 0) return false;
  const FrameRequest request{picture, look_.width, look_.height};
  requests.frames.push_back(request);
  const auto columns = static_cast<int>(film_.per_line);
  const int x = static_cast<int>(slot) % columns * look_.width;
  const int y = static_cast<int>(slot) / columns * look_.height;
  if (drawn_[slot] != static_cast<int64_t>(moment)) {
    const auto frame = find(scene.tiles, request);
    if (!frame) {
      complete_ = false;
      return false;
    }
    if (!frame->problem.empty()) {
      problem_ = frame->problem;
      return false;
    }
    if (left_ <= 0) {
      complete_ = false;
      requests.draw_again = true;
      return false;
    }
    left_ -= static_cast<int64_t>(look_.width) * look_.height;
    const float tall = static_cast<float>(frame->height) * static_cast<float>(content_.width) /
                       (static_cast<float>(frame->width) * static_cast<float>(content_.height));
    if (std::abs(tall - tall_) > kSquare) {
      tall_ = std::abs(tall - 1) < kSquare ? 1 : tall;
      requests.draw_again = true;
    }
    FilmOver over;
    over.mode = look_.mode;
    over.opacity = static_cast<double>(look_.opacity);
    over.outlined = outlined_ * scene.factor;
    over.by_size = is_signed(look_.how);
    over.line = std::max(
        {1, static_cast<int>(std::lround(ui.scale)), std::min(look_.width, look_.height) / 160});
    pictures_.update(x, y,
                     film_over(frame->image, content_.numbers_at(moment, scene.factor),
                               static_cast<int>(content_.height), static_cast<int>(content_.width),
                               filmed.scale, over));
    drawn_[slot] = static_cast<int64_t>(moment);
  }
  const auto wide = static_cast<float>(pictures_.width());
  const auto high = static_cast<float>(pictures_.height());
  const ImVec2 from{static_cast<float>(x) / wide, static_cast<float>(y) / high};
  const ImVec2 to{static_cast<float>(x + look_.width) / wide,
                  static_cast<float>(y + look_.height) / high};
  ImGui::GetWindowDrawList()->AddImage(
      reinterpret_cast<ImTextureID>(static_cast<intptr_t>(pictures_.name())), {rect.x0, rect.y0},
      {rect.x1, rect.y1}, from, to);
  return true;
}

void FilmView::draw(const Ui& ui, const ScreenRect& whole, const Scene& scene, const Filmed& filmed,
                    PanelRequests& requests) {
  const FilmLook& look = scene.state.film;
  const bool over = look.over && content_.has_pictures;
  ScreenRect area = whole;
  if (look.one) area.y1 -= ui.px(kBarHeight);
  const size_t slots = look.one ? 1 : content_.moments.size();
  first_ = look.one ? content_.clamped_moment(look.moment) : 0;
  film_ = FilmLayout::fit(area, static_cast<int64_t>(slots), content_.height, content_.width,
                          ui.px(18), ui.px(8), over ? tall_ : 1, !over);
  if (look.one) {
    film_.x0 += std::round(std::max(0.0f, area.x1 - film_.frame(0).x1) / 2);
  }
  bottom_ = whole.y0;
  complete_ = true;
  problem_.clear();
  if (film_.cell <= 0) return;
  outlined_place_.reset();
  if (filmed.outlined.size() == 1) outlined_place_ = filmed.tokens.coord(filmed.outlined.front());
  layer_.quads.clear();
  if (over) begin_pictures(ui, scene, filmed, slots);
  ImFont* const small = ui.fonts.secondary;
  for (size_t slot = 0; slot < slots; ++slot) {
    const size_t moment = moment_of_slot(slot);
    const ScreenRect f = film_.frame(static_cast<int64_t>(slot));
    if (!over || !draw_picture(ui, slot, moment, f, scene, filmed, requests)) add_map(moment, f);
    std::string name = name_of(moment);
    if (over && content_.moments[moment].picture < 0) name += ", no picture";
    if (f.width() >= text_size(small, name).x) {
      put_text(ui, small, f.x0, f.y0 - ui.px(17), ui.theme.secondary, name);
    }
  }
  gl::MapColours colours = painter_colours(scene.state, filmed.scale, scene.factor, ui.theme);
  colours.use_mean = false;
  // The line's numbers are as they are, in whatever the map's tiles are kept.
  colours.scale = shader_scale(filmed.scale, scene.factor);
  layer_.add_grid(maps_, colours, filmed.scale.map(), area);
  draw_evicted(ui, over);
  draw_outlines(ui, scene, filmed);
  draw_pins(ui, scene, filmed);
  mouse(ui, scene, filmed, requests);
  bottom_ = film_.bottom();
  if (!look.one) return;
  draw_bar(ui, {whole.x0, bottom_ + ui.px(4), whole.x1, bottom_ + ui.px(kBarHeight)}, scene,
           requests);
  bottom_ += ui.px(kBarHeight);
  if (over) ask_ahead(requests);
}

/// The pictures of the moments that come next, so that they are there when they are played.
void FilmView::ask_ahead(PanelRequests& requests) const {
  const int64_t pixels = static_cast<int64_t>(look_.width) * look_.height;
  const size_t count = content_.moments.size();
  const auto most = std::min(count, static_cast<size_t>(kMostAhead / std::max<int64_t>(1, pixels)));
  for (size_t i = 1; i < most; ++i) {
    const int64_t picture = content_.moments[(first_ + i) % count].picture;
    if (picture >= 0) requests.frames.push_back({picture, look_.width, look_.height});
  }
}

void FilmView::draw_evicted(const Ui& ui, bool over) const {
  if (content_.evicted.empty()) return;
  for (int64_t slot = 0; slot < film_.frames; ++slot) draw_evicted(ui, slot, over);
}

/// Hatches the cells that a cache had dropped: runs of a line, with those of the next lines that
/// are alike with them.
void FilmView::draw_evicted(const Ui& ui, int64_t slot, bool over) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const int64_t height = content_.height, width = content_.width;
  const std::vector<uint8_t> evicted =
      content_.evicted_at(moment_of_slot(static_cast<size_t>(slot)));
  const auto run_from = [&](int64_t y, int64_t first) {
    int64_t past = first;
    while (past < width && evicted[static_cast<size_t>(y * width + past)] != 0) ++past;
    return past;
  };
  std::vector<int64_t> drawn(static_cast<size_t>(width));  // down to which line
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t past = run_from(y, x);
      if (drawn[static_cast<size_t>(x)] > y || past == x) continue;
      int64_t bottom = y + 1;
      while (bottom < height && run_from(bottom, x) >= past) ++bottom;
      std::fill(drawn.begin() + x, drawn.begin() + past, bottom);
      const ScreenRect from = film_.cell_rect(slot, y, x),
                       to = film_.cell_rect(slot, bottom - 1, past - 1);
      // A picture of the video is none of a token that was not there.
      if (over) draw.AddRectFilled({from.x0, from.y0}, {to.x1, to.y1}, ui.theme.masked);
      // The lines of all rectangles are parts of the same ones.
      draw_hatch(ui, draw, {from.x0, from.y0, to.x1, to.y1}, -to.y1);
      x = past - 1;
    }
  }
}

void FilmView::draw_outlines(const Ui& ui, const Scene& scene, const Filmed& filmed) const {
  const auto outline = [&](std::span<const int64_t> tokens, ImU32 colour, float line) {
    std::vector<ScreenRect> frames;
    for (const int64_t token : tokens) {
      const auto at = filmed.tokens.coord(token);
      for (int64_t slot = 0; at && slot < film_.frames; ++slot) {
        if (latent_of_slot(static_cast<size_t>(slot)) != at->t) continue;
        const ScreenRect cell = film_.cell_rect(slot, at->y, at->x);
        // A cell of a pixel or two is outlined from outside, so that it stays to be seen.
        const float grow = std::max(ui.px(line), (ui.px(6) - cell.width()) / 2);
        frames.push_back({cell.x0 - grow, cell.y0 - grow, cell.x1 + grow, cell.y1 + grow});
      }
    }
    mark_frames(ui, frames, colour, line);
  };
  outline(filmed.outlined, filmed.outline, 2);
  // The other end of the entry under the mouse.
  if (!scene.readout || filmed.other == 0) return;
  const bool reverse = filmed.line->request.reverse;
  const MapPoint& point = scene.readout->point;
  outline({reverse ? &point.query : &point.key, 1}, filmed.other, 1);
}

/// The pins' ends that the film has: keys, or queries where it is of these.
void FilmView::draw_pins(const Ui& ui, const Scene& scene, const Filmed& filmed) const {
  const bool reverse = filmed.line->request.reverse;
  for (int64_t number = 1; number <= kPins; ++number) {
    const std::optional<Pin> pin = scene.state.pins.at(number);
    if (!pin) continue;
    const auto at = filmed.tokens.coord(reverse ? pin->query : pin->key);
    for (int64_t slot = 0; at && slot < film_.frames; ++slot) {
      if (latent_of_slot(static_cast<size_t>(slot)) != at->t) continue;
      const ScreenRect cell = film_.cell_rect(slot, at->y, at->x);
      draw_pin(ui, "Query", (cell.x0 + cell.x1) / 2, (cell.y0 + cell.y1) / 2, number,
               reverse ? ui.theme.query : ui.theme.key);
    }
  }
}

void FilmView::mouse(const Ui& ui, const Scene& scene, const Filmed& filmed,
                     PanelRequests& requests) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (int64_t slot = 0; slot < film_.frames; ++slot) {
    const ScreenRect f = film_.frame(slot);
    const size_t moment = moment_of_slot(static_cast<size_t>(slot));
    ImGui::SetCursorScreenPos({f.x0, f.y0});
    ImGui::PushID(static_cast<int>(slot));
    const bool clicked = ImGui::InvisibleButton("frame", {f.width(), f.height()});
    ImGui::PopID();
    mark(ui, "Query/" + name_of(moment));
    const bool hovered = ImGui::IsItemHovered();
    if (!hovered && !ImGui::IsItemActive() && !ImGui::IsItemDeactivated()) continue;
    const auto cell = [](float at, float low, float side, int64_t count) {
      return std::clamp<int64_t>(static_cast<int64_t>((at - low) / side), 0, count - 1);
    };
    const LatentCoord at{latent_of_slot(static_cast<size_t>(slot)),
                         cell(mouse.y, f.y0, film_.cell * film_.tall, content_.height),
                         cell(mouse.x, f.x0, film_.cell, content_.width)};
    if (ImGui::IsItemActivated()) {
      brushed_from_ = filmed.picks && ImGui::GetIO().KeyShift ? std::optional(at) : std::nullopt;
    }
    if (brushed_from_) {
      brush(ui, filmed, slot, at, requests);
      continue;
    }
    if (hovered) turn_wheel(scene, requests);
    const int64_t token = filmed.tokens.index_of(at);
    if (clicked && filmed.picks) pick(filmed, {token}, requests);
    if (!hovered) continue;
    const bool reverse = filmed.line->request.reverse;
    const int64_t chosen = filmed.line->request.tokens.front();
    if (!scene.state.query && filmed.picks) requests.follow = token;
    requests.hovered = reverse ? MapPoint{token, chosen} : MapPoint{chosen, token};
  }
}

/// Over one large frame the wheel goes through time, to the end and no further.
void FilmView::turn_wheel(const Scene& scene, PanelRequests& requests) {
  const float turned = ImGui::GetIO().MouseWheel;
  if (!scene.state.film.one || turned == 0) return;
  const auto last = static_cast<int64_t>(content_.moments.size()) - 1;
  const auto now = static_cast<int64_t>(first_);
  const int64_t moment = std::clamp<int64_t>(now + (turned < 0 ? 1 : -1), 0, last);
  if (moment != now) requests.act(action::SetMoment{moment});
}

/// Picks tokens; with Ctrl beside those that are picked, or a single one of these no more.
void FilmView::pick(const Filmed& filmed, std::vector<int64_t> tokens, PanelRequests& requests) {
  if (ImGui::GetIO().KeyCtrl && filmed.picked) {
    std::vector<int64_t> all = filmed.picked->tokens;
    const auto known = std::find(all.begin(), all.end(), tokens.front());
    if (tokens.size() == 1 && known != all.end()) {
      all.erase(known);
    } else {
      all.insert(all.end(), tokens.begin(), tokens.end());
    }
    tokens = std::move(all);
  }
  if (tokens.empty()) return requests.act(action::DropQuery{});
  requests.act(action::PickQuery{{std::move(tokens)}});
}

/// The rectangle of cells that is dragged over with Shift, of which the mean is shown when the
/// button is let go.
void FilmView::brush(const Ui& ui, const Filmed& filmed, int64_t slot, LatentCoord at,
                     PanelRequests& requests) {
  const auto [y0, y1] = std::minmax({brushed_from_->y, at.y});
  const auto [x0, x1] = std::minmax({brushed_from_->x, at.x});
  if (ImGui::IsItemActive()) {
    const ScreenRect from = film_.cell_rect(slot, y0, x0), to = film_.cell_rect(slot, y1, x1);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled({from.x0, from.y0}, {to.x1, to.y1}, faded(filmed.outline, 0.25f));
    draw.AddRect({from.x0, from.y0}, {to.x1, to.y1}, filmed.outline, 0, 0, ui.px(2));
    return;
  }
  brushed_from_.reset();
  std::vector<int64_t> tokens;
  each_position({IndexRange{at.t, at.t + 1}, IndexRange{y0, y1 + 1}, IndexRange{x0, x1 + 1}},
                [&](LatentCoord each) { tokens.push_back(filmed.tokens.index_of(each)); });
  pick(filmed, std::move(tokens), requests);
}

/// Play, and a line of all moments to drag along.
void FilmView::draw_bar(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                        PanelRequests& requests) {
  const auto count = static_cast<int64_t>(content_.moments.size());
  const auto now = static_cast<int64_t>(first_);
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(3)));
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  if (tool_button(ui, "Film/Play", scene.plays_film ? "Pause" : "Play", scene.plays_film,
                  "play through time (Space)")) {
    requests.play_film = true;
  }
  const ScreenRect button = item_rect();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  const std::string place = name_of(first_) + " / " + name_of(content_.moments.size() - 1);
  const float end = rect.x1 - text_size(ui.fonts.mono, place).x - ui.px(10);
  const float middle = (button.y0 + button.y1) / 2;
  put_text(ui, ui.fonts.mono, rect.x1, middle - ui.fonts.mono->FontSize / 2, ui.theme.secondary,
           place, Align::right);
  const float begin = button.x1 + ui.px(12);
  if (end - begin < ui.px(24) || count < 2) return;
  ImGui::SetCursorScreenPos({begin, button.y0});
  ImGui::InvisibleButton("moments", {end - begin, button.height()});
  mark(ui, "Film/Time");
  const float step = (end - begin) / static_cast<float>(count);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({begin, middle - ui.px(1)}, {end, middle + ui.px(1)}, ui.theme.border);
  const float x = begin + step * static_cast<float>(now);
  draw.AddRectFilled({x, middle - ui.px(4)}, {x + std::max(step, ui.px(3)), middle + ui.px(4)},
                     ui.theme.secondary, ui.px(2));
  if (!ImGui::IsItemActive()) return;
  const auto to = static_cast<int64_t>((ImGui::GetIO().MousePos.x - begin) / step);
  const int64_t moment = std::clamp<int64_t>(to, 0, count - 1);
  if (moment != now) requests.act(action::SetMoment{moment});
}

}  // namespace attnscope
