#include "io/pictures/film/film_animation.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/products/frame_track.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kOneSide = 420;
constexpr int kManySide = 280;
constexpr int kMostPanelCell = 36;
constexpr int kPanelGap = 28;
constexpr int kPanelLabelHeight = kTextHeight + 36;
constexpr int kTimeHeight = kTitleHeight + 22;
constexpr int kBarRight = kBarGap + kBarWidth + kBarTextWidth;

}  // namespace

FilmAnimation::FilmAnimation(const QueryVolumes& volumes, FilmStyle style)
    : volumes_(volumes), style_(std::move(style)) {
  const auto rows = static_cast<int>(volumes.grid[1]);
  const auto columns = static_cast<int>(volumes.grid[2]);
  const auto count = static_cast<int>(std::max<size_t>(volumes.volumes.size(), 1));
  cell_ =
      std::clamp((count == 1 ? kOneSide : kManySide) / std::max(rows, columns), 1, kMostPanelCell);
  per_line_ = count <= 3 ? count : count <= 8 ? (count + 1) / 2 : 4;
  text_ = film_header(volumes, style_);
  for (const QueryVolume& volume : volumes.volumes) {
    scales_.push_back(ColourScale::fit(style_.colours, volume.video));
  }
  const FrameCells last = cells(static_cast<size_t>(count - 1));
  width_ = std::max(kMargin + per_line_ * (columns * cell_ + kBarRight + kPanelGap) - kPanelGap,
                    kMargin + header_width(text_)) +
           kMargin;
  height_ = last.y + last.height() + kMargin;
}

FrameCells FilmAnimation::cells(size_t volume) const {
  const auto rows = static_cast<int>(volumes_.grid[1]);
  const auto columns = static_cast<int>(volumes_.grid[2]);
  const int line = static_cast<int>(volume) / per_line_;
  const int place = static_cast<int>(volume) % per_line_;
  return {kMargin + place * (columns * cell_ + kBarRight + kPanelGap),
          header_height(text_) + kTimeHeight + kPanelLabelHeight +
              line * (rows * cell_ + kPanelLabelHeight + kPanelGap / 2),
          rows, columns, cell_};
}

void FilmAnimation::draw_time(Canvas& canvas, int t) const {
  const int y = header_height(text_);
  canvas.text(kMargin, y, fmt::format("{} {}", style_.frame_name, style_.first_frame + t),
              kTitleHeight, kText);
  const std::string last =
      fmt::format("{} {}", style_.frame_name, style_.first_frame + frames() - 1);
  const std::string first = fmt::format("{} {}", style_.frame_name, style_.first_frame);
  const int left =
      kMargin + std::max(text_width(first, kTitleHeight), text_width(last, kTitleHeight)) + 24;
  const int length = width_ - kMargin - left;
  const int begin = left + length * t / frames();
  const int end = left + length * (t + 1) / frames();
  canvas.fill({left, y + kTitleHeight / 2 - 1, length, 2}, kRule);
  canvas.fill({begin, y + kTitleHeight / 2 - 2, end - begin, 4}, kQuietText);
}

Canvas FilmAnimation::frame(int t) const {
  Canvas canvas(width_, height_, kBackground);
  draw_header(canvas, text_);
  draw_time(canvas, t);
  const size_t size = static_cast<size_t>(volumes_.grid[1] * volumes_.grid[2]);
  for (size_t i = 0; i < volumes_.volumes.size(); ++i) {
    const QueryVolume& volume = volumes_.volumes[i];
    const FrameCells at = cells(i);
    const int label_width = at.width() + kBarRight - 8;
    canvas.text(at.x, at.y - kPanelLabelHeight, elided(volume.label, label_width, kTextHeight),
                kTextHeight, kText);
    draw_frame_cells(canvas, at,
                     std::span(volume.video).subspan(static_cast<size_t>(t) * size, size),
                     scales_[i], style_.video_frame(t), film_over_of(style_, volume),
                     evicted_in(volume, t, size));
    if (volumes_.tracked) {
      const TrackPoint point = track_point(
          std::span(volume.video).subspan(static_cast<size_t>(t) * size, size), volumes_.grid[2]);
      if (point.best_y) draw_match_cell(canvas, at.at(*point.best_y, *point.best_x));
    }
    if (volume.query && (*volume.query)[0] == t) {
      draw_query_cell(canvas, at.at((*volume.query)[1], (*volume.query)[2]));
    }
    draw_colour_bar(canvas, {at.x + at.width() + kBarGap, at.y, kBarWidth, at.height()}, scales_[i],
                    style_.unit);
  }
  return canvas;
}

}  // namespace attnscope
