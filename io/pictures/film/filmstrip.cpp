#include "io/pictures/film/filmstrip.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/products/frame_track.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/film/film_frame.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/picture_style.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kFrameGap = 10;
constexpr int kLabelTop = 16;
constexpr int kFrameLabelHeight = kLabelTop + kTextHeight + 22;
constexpr int kNumberHeight = kTextHeight + 8;
constexpr int kLineGap = 18;
constexpr int kStripGap = 36;
/// Lines of frames are kept below this width.
constexpr int kMaxLineWidth = 1680;
constexpr int kMostFrameCell = 18;

bool any_evicted(const QueryVolumes& volumes) {
  return std::any_of(volumes.volumes.begin(), volumes.volumes.end(), [](const QueryVolume& v) {
    return std::any_of(v.evicted.begin(), v.evicted.end(), [](uint8_t cell) { return cell != 0; });
  });
}

}  // namespace

std::span<const uint8_t> evicted_in(const QueryVolume& volume, int64_t t, size_t cells) {
  if (volume.evicted.empty()) return {};
  return std::span(volume.evicted).subspan(static_cast<size_t>(t) * cells, cells);
}

FilmOver film_over_of(const FilmStyle& style, const QueryVolume& volume) {
  FilmOver over = style.over;
  if (over.mode == FilmMode::outline && over.outlined == 0 && !style.video.empty()) {
    over.outlined = mass_threshold(volume.video, kOutlinedMass);
  }
  return over;
}

PictureText film_header(const QueryVolumes& volumes, const FilmStyle& style) {
  const bool named = !volumes.model.empty();
  const bool log = style.colours.scale == ScaleKind::log2;
  return {
      named ? volumes.model : volumes.capture,
      {joined_parts({named ? volumes.capture : "", volumes.query_text, volumes.domain_text,
                     volumes.domain_text.empty() ? "" : "exact", volumes.state_text,
                     style.video.empty() ? "" : "over the video in grey", style.about,
                     volumes.tracked ? "best match of each frame outlined in white" : "",
                     any_evicted(volumes) ? "hatched: evicted from the cache" : "",
                     log ? "" : std::string(scale_kind_name(style.colours.scale)) + " colours"})}};
}

Filmstrip::Filmstrip(const QueryVolumes& volumes, FilmStyle style)
    : volumes_(volumes),
      style_(std::move(style)),
      frames_(static_cast<int>(volumes.grid[0])),
      rows_(static_cast<int>(volumes.grid[1])),
      columns_(static_cast<int>(volumes.grid[2])) {
  cell_ = std::clamp(style_.frame_side / std::max(rows_, columns_), 1, kMostFrameCell);
  const int most = std::max(1, (kMaxLineWidth + kFrameGap) / (frame_width() + kFrameGap));
  lines_ = (frames_ + most - 1) / most;
  // Lines of equal length look calmer than a full one and a rest.
  per_line_ = (frames_ + lines_ - 1) / lines_;
  int text = header_width(film_header(volumes, style_));
  for (const QueryVolume& volume : volumes.volumes) {
    text = std::max(text, text_width(volume.label, kTextHeight) + 320);
  }
  const int strip = frames_right() - kMargin + kBarGap + kBarWidth + kBarTextWidth;
  width_ = std::max(strip, text) + 2 * kMargin;
}

int Filmstrip::frame_width() const { return columns_ * cell_; }
int Filmstrip::frame_height() const { return rows_ * cell_; }
int Filmstrip::frames_right() const {
  return kMargin + per_line_ * (frame_width() + kFrameGap) - kFrameGap;
}

int Filmstrip::header_height() const {
  return attnscope::header_height(film_header(volumes_, style_));
}

int Filmstrip::strip_height() const {
  return kFrameLabelHeight + lines_ * (kNumberHeight + frame_height() + kLineGap) - kLineGap +
         kStripGap;
}

int Filmstrip::height() const {
  return header_height() + static_cast<int>(volumes_.volumes.size()) * strip_height();
}

PixelRect Filmstrip::cell(int64_t t, int64_t y, int64_t x) const {
  const int line = static_cast<int>(t) / per_line_;
  const int place = static_cast<int>(t) % per_line_;
  const int top =
      kFrameLabelHeight + line * (kNumberHeight + frame_height() + kLineGap) + kNumberHeight;
  return {kMargin + place * (frame_width() + kFrameGap) + static_cast<int>(x) * cell_,
          top + static_cast<int>(y) * cell_, cell_, cell_};
}

Canvas Filmstrip::header() const {
  Canvas canvas(width_, header_height(), kBackground);
  draw_header(canvas, film_header(volumes_, style_));
  return canvas;
}

Canvas Filmstrip::strip(const QueryVolume& volume) const {
  Canvas canvas(width_, strip_height(), kBackground);
  const ColourScale scale = ColourScale::fit(style_.colours, volume.video);
  draw_label(canvas, volume);
  draw_frames(canvas, volume, scale);
  if (volumes_.tracked) {
    for (const TrackPoint& point : frame_track(volume.video, volumes_.grid)) {
      if (!point.best_y) continue;
      draw_match_cell(canvas, cell(point.t, *point.best_y, *point.best_x));
    }
  }
  if (volume.query) {
    const auto& [t, y, x] = *volume.query;
    draw_query_cell(canvas, cell(t, y, x));
  }
  draw_colour_bar(canvas, bar(), scale, style_.unit);
  return canvas;
}

void Filmstrip::draw_label(Canvas& canvas, const QueryVolume& volume) const {
  canvas.fill({kMargin, 0, width_ - 2 * kMargin, 1}, kRule);
  canvas.text(kMargin, kLabelTop, volume.label, kTextHeight, kText);
  // Sums of a row are masses, and no others are.
  if (volumes_.domain != "all" || volumes_.reverse || volumes_.weighting != "none") return;
  const double video = std::accumulate(volume.video.begin(), volume.video.end(), 0.0);
  const auto words = [&](double mass) {
    return volumes_.shares ? share_words(mass) : number_words(mass);
  };
  std::string masses = one_line(volumes_.shown) + " " + words(video);
  if (!volume.text.empty()) {
    masses += "  text " + words(std::accumulate(volume.text.begin(), volume.text.end(), 0.0));
  }
  canvas.text(width_ - kMargin - text_width(masses, kTextHeight), kLabelTop, masses, kTextHeight,
              kQuietText);
}

void Filmstrip::draw_frames(Canvas& canvas, const QueryVolume& volume,
                            const ColourScale& scale) const {
  const FilmOver over = film_over_of(style_, volume);
  for (int t = 0; t < frames_; ++t) {
    const PixelRect first = cell(t, 0, 0);
    const bool holds_query = volume.query && (*volume.query)[0] == t;
    canvas.text(first.x, first.y - kNumberHeight,
                fmt::format("{} {}", style_.frame_name, style_.first_frame + t), kTextHeight,
                holds_query ? kQuery : kQuietText);
    const size_t size = static_cast<size_t>(rows_) * static_cast<size_t>(columns_);
    draw_frame_cells(canvas, {first.x, first.y, rows_, columns_, cell_},
                     std::span(volume.video).subspan(static_cast<size_t>(t) * size, size), scale,
                     style_.video_frame(t), over, evicted_in(volume, t, size));
  }
}

PixelRect Filmstrip::bar() const {
  const int top = cell(0, 0, 0).y;
  const int bottom = cell(static_cast<int64_t>(per_line_) * (lines_ - 1), 0, 0).y + frame_height();
  return {frames_right() + kBarGap, top, kBarWidth, bottom - top};
}

}  // namespace attnscope
