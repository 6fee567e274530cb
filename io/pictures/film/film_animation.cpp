#include "io/pictures/film/film_animation.h"

#include <fmt/core.h>

#include <algorithm>

#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

// Lengths in the dark style.
constexpr int kOneSide = 420;
constexpr int kManySide = 280;
constexpr int kMostPanelCell = 36;
constexpr int kPanelGap = 28;

constexpr std::string_view kPanelWayOut = "take other --columns, or select fewer heads";

int panel_label_height(const PictureStyle& look) { return look.text_height + look.px(36); }

int time_height(const PictureStyle& look) { return look.title_height + look.px(22); }

}  // namespace

FilmAnimation::FilmAnimation(const QueryVolumes& volumes, FilmStyle style)
    : volumes_(volumes),
      style_(std::move(style)),
      frames_(drawn_frames(style_, volumes.grid[0])),
      text_(film_header(volumes, style_)) {
  const PictureStyle& look = style_.look;
  const auto side = static_cast<int>(std::max(volumes.grid[1], volumes.grid[2]));
  const auto count = static_cast<int>(std::max<size_t>(volumes.volumes.size(), 1));
  const int usual =
      std::clamp(look.px(count == 1 ? kOneSide : kManySide) / side, 1, look.px(kMostPanelCell));
  scales_ = film_scales(volumes, style_);
  per_line_ = count <= 3 ? count : count <= 8 ? (count + 1) / 2 : 4;
  if (style_.columns > 0) per_line_ = std::min(style_.columns, count);
  // A narrow page has fewer side by side.
  while (style_.columns == 0 && look.page_width > 0 && per_line_ > 1 &&
         lay_out(std::max(1, look.cell)).width > look.page_width) {
    --per_line_;
  }
  const int cell = fitting_cell(
      look, usual, std::max(1, look.page_width / side), [this](int c) { return lay_out(c); },
      kPanelWayOut);
  const PageSize size = lay_out(cell);
  width_ = look.page_width > 0 ? look.page_width : size.width;
  height_ = size.height;
}

/// Sets the cells' side; gives the page that they need.
PageSize FilmAnimation::lay_out(int cell) {
  const PictureStyle& look = style_.look;
  cell_ = cell;
  const FrameCells last = cells(std::max<size_t>(volumes_.volumes.size(), 1) - 1);
  const int panel = last.width() + bar_room(look, style_.unit) + look.px(kPanelGap);
  int right = look.margin + per_line_ * panel - look.px(kPanelGap);
  if (look.page_width == 0) right = std::max(right, look.margin + header_width(text_, look));
  return {right + look.margin, last.y + last.height() + look.margin};
}

FrameCells FilmAnimation::cells(size_t volume) const {
  const PictureStyle& look = style_.look;
  const auto rows = static_cast<int>(volumes_.grid[1]);
  const auto columns = static_cast<int>(volumes_.grid[2]);
  const int line = static_cast<int>(volume) / per_line_;
  const int place = static_cast<int>(volume) % per_line_;
  const int label = panel_label_height(look);
  return {
      look.margin + place * (columns * cell_ + bar_room(look, style_.unit) + look.px(kPanelGap)),
      header_height(text_, look) + time_height(look) + label +
          line * (rows * cell_ + label + look.px(kPanelGap) / 2),
      rows, columns, cell_};
}

void FilmAnimation::draw_time(Canvas& canvas, int64_t t) const {
  const PictureStyle& look = style_.look;
  const int y = header_height(text_, look);
  const int64_t count = volumes_.grid[0];
  const auto name = [&](int64_t frame) {
    return fmt::format("{} {}", style_.frame_name, style_.first_frame + frame);
  };
  canvas.text(look.margin, y, name(t), look.title_height, look.text);
  const int left = look.margin +
                   std::max(text_width(name(0), look.title_height),
                            text_width(name(count - 1), look.title_height)) +
                   look.px(24);
  const int64_t length = width_ - look.margin - left;
  const auto begin = static_cast<int>(left + length * t / count);
  const auto end = static_cast<int>(left + length * (t + 1) / count);
  const int middle = y + look.title_height / 2;
  canvas.fill({left, middle - look.px(1), static_cast<int>(length), look.px(2)}, look.rule);
  canvas.fill({begin, middle - look.px(2), end - begin, look.px(4)}, look.quiet_text);
}

Canvas FilmAnimation::frame(int i) const {
  const PictureStyle& look = style_.look;
  const int64_t t = frames_[static_cast<size_t>(i)];
  Canvas canvas(width_, height_, look);
  draw_header(canvas, text_, look);
  draw_time(canvas, t);
  const TickNotation notation = bar_notation(scales_, cells(0).height(), look);
  for (size_t v = 0; v < volumes_.volumes.size(); ++v) {
    const QueryVolume& volume = volumes_.volumes[v];
    const FrameCells at = cells(v);
    const int label_width = at.width() + bar_room(look, style_.unit) - look.px(8);
    canvas.text(at.x, at.y - panel_label_height(look),
                elided_front(joined_parts({volume.label, mean_words(volumes_, volume)}),
                             label_width, look.text_height),
                look.text_height, look.text);
    draw_film_frame(canvas, at, {volumes_, volume, t}, scales_[v], style_,
                    film_over_of(style_, volume));
    if (!look.legend) continue;
    draw_colour_bar(canvas,
                    {at.x + at.width() + look.px(kBarGap), at.y, look.px(kBarWidth), at.height()},
                    scales_[v], style_.unit, look, notation);
  }
  return canvas;
}

}  // namespace attnscope
