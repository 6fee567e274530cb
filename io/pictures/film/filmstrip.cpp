#include "io/pictures/film/filmstrip.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/products/frame_track.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

// Lengths in the dark style.
constexpr int kFrameGap = 10;
constexpr int kLabelTop = 16;
constexpr int kBelowLabel = 22;
constexpr int kLineGap = 18;
constexpr int kStripGap = 36;
/// Lines of frames are kept below this width.
constexpr int kMaxLineWidth = 1680;
constexpr int kMostFrameCell = 18;
/// Beside a label for the sums of its row.
constexpr int kMassRoom = 320;
/// Frames on a page of a given width are at least this wide where that leaves one.
constexpr int kLeastFrameWidth = 100;

constexpr std::string_view kStripWayOut =
    "choose fewer with --frames, other --columns, or fewer heads";

bool any_evicted(const QueryVolumes& volumes) {
  return std::any_of(volumes.volumes.begin(), volumes.volumes.end(), [](const QueryVolume& v) {
    return std::any_of(v.evicted.begin(), v.evicted.end(), [](uint8_t cell) { return cell != 0; });
  });
}

std::string number_text(const QueryVolumes& volumes, double value) {
  return volumes.shares ? share_words(value) : number_words(value);
}

}  // namespace

std::string mean_words(const QueryVolumes& volumes, const QueryVolume& volume) {
  return volumes.tells_mean ? "mean " + number_text(volumes, volume.told_mean) : "";
}

std::string widest_number(const QueryVolumes& volumes, const PictureStyle& look) {
  std::string widest;
  // Sums, and differences of two.
  for (const double value : {-0.99999912, -1.23e-8, -3.21e-45}) {
    const std::string words = number_text(volumes, value);
    if (text_width(words, look.text_height) > text_width(widest, look.text_height)) widest = words;
  }
  return widest;
}

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

std::string film_unit(const QueryVolumes& volumes) {
  return volumes.weighting == "value" ? "weight × ‖v‖" : "weight";
}

PictureText film_header(const QueryVolumes& volumes, const FilmStyle& style) {
  const bool named = !volumes.model.empty();
  const bool log = style.colours.scale == ScaleKind::log2;
  return {named ? volumes.model : volumes.capture,
          {joined_parts(
              {named ? volumes.capture : "", volumes.query_text, volumes.domain_text,
               volumes.domain_text.empty() ? "" : "exact", volumes.state_text,
               volumes.weighting == "value" ? "weights times ‖v‖, the norm of the key's value" : "",
               style.has_video() ? "over the video in grey" : "", style.about,
               volumes.tracked ? "best match of each frame outlined in white" : "",
               any_evicted(volumes) ? "hatched: evicted from the cache" : "",
               log ? "" : std::string(scale_kind_name(style.colours.scale)) + " colours"})}};
}

void check_frames(const FilmStyle& style, int64_t frames) {
  for (const int64_t t : style.frames) {
    if (t >= 0 && t < frames) continue;
    throw usage_error(
        fmt::format("--frames: {} is outside the film (valid 0 to {})", t, frames - 1));
  }
}

std::vector<int64_t> drawn_frames(const FilmStyle& style, int64_t frames) {
  check_frames(style, frames);
  if (!style.frames.empty()) return style.frames;
  std::vector<int64_t> all(static_cast<size_t>(frames));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<ColourScale> film_scales(const QueryVolumes& volumes, const FilmStyle& style) {
  std::vector<ColourScale> scales;
  for (const QueryVolume& volume : volumes.volumes) {
    scales.push_back(
        ColourScale::fit(style.colours, volume.video).with_masked(style.look.masked_cell));
  }
  return scales;
}

void draw_film_frame(Canvas& canvas, const FrameCells& at, const FilmFrame& frame,
                     const ColourScale& scale, const FilmStyle& style, const FilmOver& over) {
  const PictureStyle& look = style.look;
  const QueryVolume& volume = frame.volume;
  const size_t size = static_cast<size_t>(at.rows) * static_cast<size_t>(at.columns);
  const auto values = std::span(volume.video).subspan(static_cast<size_t>(frame.t) * size, size);
  draw_frame_cells(canvas, at, values, scale, style.video_frame(frame.t), over,
                   evicted_in(volume, frame.t, size), look);
  if (frame.volumes.tracked) {
    const TrackPoint point = track_point(values, at.columns);
    if (point.best_y) draw_match_cell(canvas, at.at(*point.best_y, *point.best_x), look);
  }
  if (volume.query && (*volume.query)[0] == frame.t) {
    draw_query_cell(canvas, at.at((*volume.query)[1], (*volume.query)[2]), look);
  }
}

Filmstrip::Filmstrip(const QueryVolumes& volumes, FilmStyle style)
    : volumes_(volumes),
      style_(std::move(style)),
      frames_(drawn_frames(style_, volumes.grid[0])),
      rows_(static_cast<int>(volumes.grid[1])),
      columns_(static_cast<int>(volumes.grid[2])) {
  const PictureStyle& look = style_.look;
  header_height_ = attnscope::header_height(film_header(volumes, style_), look);
  find_labels();
  choose_cells();
  if (look.page_width > 0) {
    width_ = look.page_width;
    return;
  }
  int text = header_width(film_header(volumes, style_), look);
  for (const QueryVolume& volume : volumes.volumes) {
    text = std::max(text, text_width(volume.label, look.text_height) + look.px(kMassRoom));
  }
  width_ = std::max(strip_width(), text) + 2 * look.margin;
}

/// Sums of a row are masses, and no others are.
bool Filmstrip::has_masses() const {
  return volumes_.domain == "all" && !volumes_.reverse && volumes_.weighting == "none";
}

std::vector<std::string> Filmstrip::label_lines(const QueryVolume& volume) const {
  const PictureStyle& look = style_.look;
  if (look.page_width == 0) return {volume.label};
  return wrapped_words(volume.label, look.page_width - 2 * look.margin, look.text_height);
}

/// The sums of a row over the video and, where it has text, over that; a line each where both are
/// wider than the room.
std::vector<std::string> Filmstrip::mass_lines(std::string_view video, std::string_view text,
                                               int room) const {
  const int height = style_.look.text_height;
  const std::string first = fmt::format("{} {}", one_line(volumes_.shown), video);
  const std::string second = text.empty() ? "" : fmt::format("text {}", text);
  const std::string both = text.empty() ? first : first + "  " + second;
  if (style_.look.page_width == 0 || text_width(both, height) <= room) return {both};
  std::vector<std::string> lines = wrapped_words(first, room, height);
  if (text.empty()) return lines;
  for (std::string& line : wrapped_words(second, room, height)) lines.push_back(std::move(line));
  return lines;
}

/// Beside a volume's label; without one as wide as they may become.
std::vector<std::string> Filmstrip::sum_lines(const QueryVolume* volume, int room) const {
  const PictureStyle& look = style_.look;
  if (volumes_.tells_mean) {
    const std::string words =
        volume ? mean_words(volumes_, *volume) : "mean " + widest_number(volumes_, look);
    if (look.page_width == 0) return {words};
    return wrapped_words(words, room, look.text_height);
  }
  if (volume == nullptr) {
    const std::string number = widest_number(volumes_, look);
    return mass_lines(number, number, room);
  }
  const auto sum = [&](const std::vector<float>& values) {
    return number_text(volumes_, std::accumulate(values.begin(), values.end(), 0.0));
  };
  return mass_lines(sum(volume->video), volume->text.empty() ? "" : sum(volume->text), room);
}

void Filmstrip::find_labels() {
  const PictureStyle& look = style_.look;
  if (look.page_width == 0) return;
  const int width = look.page_width - 2 * look.margin;
  const std::vector<std::string> sums = sum_lines(nullptr, width);
  const int beside_label =
      width - look.px(kMassRoom / 10) - text_width(sums.front(), look.text_height);
  size_t most = 1;
  for (const QueryVolume& volume : volumes_.volumes) {
    const std::vector<std::string> lines = label_lines(volume);
    most = std::max(most, lines.size());
    const bool beside = sums.size() == 1 && lines.size() == 1 &&
                        text_width(lines.front(), look.text_height) <= beside_label;
    masses_below_ = masses_below_ || (has_sums() && !beside);
  }
  label_lines_ = static_cast<int>(most + (masses_below_ ? sums.size() : 0));
}

int Filmstrip::strip_width() const {
  return frames_right() - style_.look.margin + bar_room(style_.look, style_.unit);
}

PageSize Filmstrip::size_at(int cell) {
  cell_ = cell;
  return {strip_width() + 2 * style_.look.margin, height()};
}

/// Lines for per_line_ frames each, of equal length: that looks calmer than full ones and a rest.
void Filmstrip::choose_lines() {
  const int count = static_cast<int>(frames_.size());
  lines_ = (count + per_line_ - 1) / per_line_;
  if (style_.columns == 0) per_line_ = (count + lines_ - 1) / lines_;
}

void Filmstrip::choose_cells() {
  const PictureStyle& look = style_.look;
  const int usual = std::clamp(look.px(style_.frame_side) / std::max(rows_, columns_), 1,
                               look.px(kMostFrameCell));
  const int count = static_cast<int>(frames_.size());
  const int gap = look.px(kFrameGap);
  const auto solve = [&](int per_line) {
    per_line_ = std::clamp(per_line, 1, count);
    choose_lines();
    cell_ = fitting_cell(
        look, usual, look.page_width / std::max(1, columns_), [this](int c) { return size_at(c); },
        kStripWayOut);
  };
  cell_ = look.cell > 0 ? look.cell : usual;
  if (style_.columns > 0) return solve(style_.columns);
  if (look.page_width == 0 || look.cell > 0) {
    const int room = look.page_width == 0
                         ? look.px(kMaxLineWidth)
                         : look.page_width - 2 * look.margin - bar_room(look, style_.unit);
    return solve((room + gap) / (frame_width() + gap));
  }
  solve(frames_a_line());
  const int least = look.px(kLeastFrameWidth / 2);
  if (look.page_height > 0 && frame_width() < least) {
    throw usage_error(fmt::format(
        "--size: frames would be {} pixels wide (at least {} unless --cell or --columns is given): "
        "choose fewer heads or fewer --frames, a larger --size, or --columns",
        frame_width(), least));
  }
}

/// The largest cell with which the page fits so many frames in a line; 0: none does.
int Filmstrip::page_cell(int per_line) {
  per_line_ = per_line;
  choose_lines();
  return largest_cell(style_.look, style_.look.page_width / std::max(1, columns_),
                      [this](int c) { return size_at(c); });
}

/// In a box, what makes the largest cells; else as many as are still wide enough, or half as wide
/// where that is one alone.
int Filmstrip::frames_a_line() {
  const PictureStyle& look = style_.look;
  int best = 1, best_cell = 0, most_half = 1;
  for (int n = static_cast<int>(frames_.size()); n >= 1; --n) {
    const int cell = page_cell(n);
    if (cell > best_cell) {
      best = n;
      best_cell = cell;
    }
    if (look.page_height > 0) continue;
    const int width = cell * columns_;
    if (most_half == 1 && width >= look.px(kLeastFrameWidth / 2)) most_half = n;
    if (width >= look.px(kLeastFrameWidth)) return n > 1 ? n : most_half;
  }
  return look.page_height > 0 ? best : most_half;
}

int Filmstrip::frame_width() const { return columns_ * cell_; }
int Filmstrip::frame_height() const { return rows_ * cell_; }
int Filmstrip::frames_right() const {
  const int gap = style_.look.px(kFrameGap);
  return style_.look.margin + per_line_ * (frame_width() + gap) - gap;
}

/// From a strip's top to its first line of frames.
int Filmstrip::label_height() const {
  const PictureStyle& look = style_.look;
  return look.px(kLabelTop) + look.text_height + (label_lines_ - 1) * line_rise(look) +
         look.px(kBelowLabel);
}

int Filmstrip::strip_height() const {
  const PictureStyle& look = style_.look;
  return label_height() + lines_ * (line_rise(look) + frame_height() + look.px(kLineGap)) -
         look.px(kLineGap) + look.px(kStripGap);
}

int Filmstrip::height() const {
  return header_height() + static_cast<int>(volumes_.volumes.size()) * strip_height();
}

PixelRect Filmstrip::cell(int64_t t, int64_t y, int64_t x) const {
  const PictureStyle& look = style_.look;
  const auto at =
      static_cast<int>(std::lower_bound(frames_.begin(), frames_.end(), t) - frames_.begin());
  const int line = at / per_line_;
  const int place = at % per_line_;
  const int rise = line_rise(look) + frame_height() + look.px(kLineGap);
  const int top = label_height() + line * rise + line_rise(look);
  return {look.margin + place * (frame_width() + look.px(kFrameGap)) + static_cast<int>(x) * cell_,
          top + static_cast<int>(y) * cell_, cell_, cell_};
}

Canvas Filmstrip::header() const {
  Canvas canvas(width_, header_height(), style_.look);
  draw_header(canvas, film_header(volumes_, style_), style_.look);
  return canvas;
}

int64_t Filmstrip::band_bytes() const {
  return int64_t{width_} * std::max(header_height(), strip_height()) *
         static_cast<int64_t>(sizeof(Rgb));
}

PageBands Filmstrip::page() const {
  return {width_, height(), [this](const TakeBand& take) {
            take(header());
            const std::vector<ColourScale> scales = film_scales(volumes_, style_);
            const TickNotation notation = bar_notation(scales, bar().height, style_.look);
            for (size_t i = 0; i < scales.size(); ++i) {
              take(strip(volumes_.volumes[i], scales[i], notation));
            }
          }};
}

Canvas Filmstrip::strip(const QueryVolume& volume, const ColourScale& scale,
                        TickNotation notation) const {
  const PictureStyle& look = style_.look;
  Canvas canvas(width_, strip_height(), look);
  draw_label(canvas, volume);
  draw_frames(canvas, volume, scale);
  if (look.legend) draw_colour_bar(canvas, bar(), scale, style_.unit, look, notation);
  return canvas;
}

void Filmstrip::draw_label(Canvas& canvas, const QueryVolume& volume) const {
  const PictureStyle& look = style_.look;
  const bool alone = look.title && look.title->empty() && volumes_.volumes.size() == 1;
  if (!alone) {
    canvas.fill({look.margin, 0, width_ - 2 * look.margin, look.px(1)}, look.rule);
  }
  int y = look.px(kLabelTop);
  for (const std::string& line : label_lines(volume)) {
    canvas.text(look.margin, y, line, look.text_height, look.text);
    y += line_rise(look);
  }
  if (!has_sums()) return;
  if (!masses_below_) y = look.px(kLabelTop);
  for (const std::string& line : sum_lines(&volume, width_ - 2 * look.margin)) {
    const int right = width_ - look.margin - text_width(line, look.text_height);
    canvas.text(masses_below_ ? look.margin : right, y, line, look.text_height, look.quiet_text);
    y += line_rise(look);
  }
}

void Filmstrip::draw_frames(Canvas& canvas, const QueryVolume& volume,
                            const ColourScale& scale) const {
  const FilmOver over = film_over_of(style_, volume);
  const PictureStyle& look = style_.look;
  const auto name = [&](int64_t t) {
    return fmt::format("{} {}", style_.frame_name, style_.first_frame + t);
  };
  // Where names are wider than frames, some of them stand for all.
  const int widest = std::max(text_width(name(frames_.front()), look.text_height),
                              text_width(name(frames_.back()), look.text_height));
  const int pitch = frame_width() + look.px(kFrameGap);
  const int named = (widest + look.px(4) + pitch - 1) / pitch;
  for (size_t i = 0; i < frames_.size(); ++i) {
    const int64_t t = frames_[i];
    const PixelRect first = cell(t, 0, 0);
    const bool holds_query = volume.query && (*volume.query)[0] == t;
    if (static_cast<int>(i) % per_line_ % named == 0) {
      canvas.text(first.x, first.y - line_rise(look), name(t), look.text_height,
                  holds_query ? look.query : look.quiet_text);
    }
    draw_film_frame(canvas, {first.x, first.y, rows_, columns_, cell_}, {volumes_, volume, t},
                    scale, style_, over);
  }
}

PixelRect Filmstrip::bar() const {
  const PictureStyle& look = style_.look;
  const int top = cell(frames_.front(), 0, 0).y;
  const auto last = static_cast<size_t>(per_line_) * static_cast<size_t>(lines_ - 1);
  const int bottom = cell(frames_[last], 0, 0).y + frame_height();
  return {frames_right() + look.px(kBarGap), top, look.px(kBarWidth), bottom - top};
}

}  // namespace attnscope
