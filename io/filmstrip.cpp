#include "io/filmstrip.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "io/bitmap_font.h"

namespace attnscope {
namespace {

constexpr Rgb kBackground{0x10, 0x12, 0x14};
constexpr Rgb kText{0xd7, 0xdd, 0xe3};
constexpr Rgb kQuietText{0x84, 0x8d, 0x97};
constexpr Rgb kRule{0x2a, 0x30, 0x36};
constexpr Rgb kMaskedCell{0x07, 0x08, 0x09};
constexpr Rgb kQuery{0x4a, 0xa8, 0xff};

constexpr int kMargin = 32;
constexpr int kFrameGap = 10;
constexpr int kTextScale = 2;
constexpr int kTitleScale = 3;
constexpr int kTextHeight = kCapHeight * kTextScale;
constexpr int kTitleHeight = kCapHeight * kTitleScale;
/// From one line of text to what stands below it.
constexpr int kTextGap = 12;
constexpr int kLabelTop = 16;
constexpr int kLabelHeight = kLabelTop + kTextHeight + 22;
constexpr int kNumberHeight = kTextHeight + 8;
constexpr int kLineGap = 18;
constexpr int kStripGap = 36;
constexpr int kBarGap = 24;
constexpr int kBarWidth = 16;
constexpr int kBarTextWidth = 120;
/// Frames are enlarged to about this many pixels, and lines of frames kept below this width.
constexpr int kFrameSide = 240;
constexpr int kMaxLineWidth = 1680;
constexpr int kMaxCell = 18;

constexpr double kLowQuantile = 0.01;
constexpr double kHighQuantile = 0.999;

int text_width(std::string_view text, int scale) { return text_columns(text) * scale; }

/// numpy's default: linear between the neighbours in order. `sorted` must not be empty.
double quantile(const std::vector<float>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

std::string title_of(const QueryVolumes& volumes) {
  return volumes.model.empty() ? volumes.capture : volumes.model;
}

std::string subtitle_of(const QueryVolumes& volumes) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += "  ·  ";
    text += part;
  };
  if (!volumes.model.empty()) add(volumes.capture);
  add(volumes.query_text);
  if (!volumes.domain.empty()) add("softmax domain " + volumes.domain);
  if (volumes.weighting == "value") add("weight times |v|");
  return text;
}

/// "1/256" for a power of two.
std::string power_text(int exponent) {
  if (exponent >= 0) return fmt::format("{}", std::exp2(exponent));
  if (exponent < -19) return fmt::format("2^{}", exponent);
  return fmt::format("1/{}", int64_t{1} << -exponent);
}

}  // namespace

WeightRange display_range(const std::vector<float>& weights) {
  std::vector<float> positive;
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(positive),
               [](float w) { return w > 0 && std::isfinite(w); });
  if (positive.empty()) return {0.5, 1};
  std::sort(positive.begin(), positive.end());
  WeightRange range{quantile(positive, kLowQuantile), quantile(positive, kHighQuantile)};
  // An even row is shown in the middle of its colours, not at one end.
  const double octaves = std::log2(range.high / range.low);
  if (octaves < 1) {
    const double more = std::exp2((1 - octaves) / 2);
    range = {range.low / more, range.high * more};
  }
  return range;
}

Rgb weight_colour(double weight, const WeightRange& range) {
  if (!(weight > 0)) return kMaskedCell;
  const double unit = std::log2(weight / range.low) / std::log2(range.high / range.low);
  return colormap_at(Colormap::viridis, unit);
}

Filmstrip::Filmstrip(const QueryVolumes& volumes)
    : volumes_(volumes),
      frames_(static_cast<int>(volumes.grid[0])),
      rows_(static_cast<int>(volumes.grid[1])),
      columns_(static_cast<int>(volumes.grid[2])) {
  cell_ = std::clamp(kFrameSide / std::max(rows_, columns_), 1, kMaxCell);
  const int most = std::max(1, (kMaxLineWidth + kFrameGap) / (frame_width() + kFrameGap));
  lines_ = (frames_ + most - 1) / most;
  // Lines of equal length look calmer than a full one and a rest.
  per_line_ = (frames_ + lines_ - 1) / lines_;
  int text = std::max(text_width(title_of(volumes), kTitleScale),
                      text_width(subtitle_of(volumes), kTextScale));
  for (const QueryVolume& volume : volumes.volumes) {
    text = std::max(text, text_width(volume.label, kTextScale) + 320);
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
  return kMargin + kTitleHeight + kTextGap + kTextHeight + 24;
}

int Filmstrip::strip_height() const {
  return kLabelHeight + lines_ * (kNumberHeight + frame_height() + kLineGap) - kLineGap + kStripGap;
}

int Filmstrip::height() const {
  return header_height() + static_cast<int>(volumes_.volumes.size()) * strip_height();
}

PixelRect Filmstrip::cell(int64_t t, int64_t y, int64_t x) const {
  const int line = static_cast<int>(t) / per_line_;
  const int place = static_cast<int>(t) % per_line_;
  const int top = kLabelHeight + line * (kNumberHeight + frame_height() + kLineGap) + kNumberHeight;
  return {kMargin + place * (frame_width() + kFrameGap) + static_cast<int>(x) * cell_,
          top + static_cast<int>(y) * cell_, cell_, cell_};
}

Canvas Filmstrip::header() const {
  Canvas canvas(width_, header_height(), kBackground);
  canvas.text(kMargin, kMargin, title_of(volumes_), kTitleScale, kText);
  canvas.text(kMargin, kMargin + kTitleHeight + kTextGap, subtitle_of(volumes_), kTextScale,
              kQuietText);
  return canvas;
}

Canvas Filmstrip::strip(const QueryVolume& volume) const {
  Canvas canvas(width_, strip_height(), kBackground);
  const WeightRange range = display_range(volume.video);
  draw_label(canvas, volume);
  draw_frames(canvas, volume, range);
  draw_query(canvas, volume);
  draw_colour_bar(canvas, range);
  return canvas;
}

void Filmstrip::draw_label(Canvas& canvas, const QueryVolume& volume) const {
  canvas.fill({kMargin, 0, width_ - 2 * kMargin, 1}, kRule);
  canvas.text(kMargin, kLabelTop, volume.label, kTextScale, kText);
  // Sums of a row are masses, and no others are.
  if (volumes_.domain != "all" || volumes_.reverse || volumes_.weighting != "none") return;
  const double video = std::accumulate(volume.video.begin(), volume.video.end(), 0.0);
  std::string masses = fmt::format("video {:.3f}", video);
  if (!volume.text.empty()) {
    masses +=
        fmt::format("  text {:.3f}", std::accumulate(volume.text.begin(), volume.text.end(), 0.0));
  }
  canvas.text(width_ - kMargin - text_width(masses, kTextScale), kLabelTop, masses, kTextScale,
              kQuietText);
}

void Filmstrip::draw_frames(Canvas& canvas, const QueryVolume& volume,
                            const WeightRange& range) const {
  for (int t = 0; t < frames_; ++t) {
    const PixelRect first = cell(t, 0, 0);
    const bool holds_query = volume.query && (*volume.query)[0] == t;
    canvas.text(first.x, first.y - kNumberHeight, fmt::format("t {}", t), kTextScale,
                holds_query ? kQuery : kQuietText);
    for (int y = 0; y < rows_; ++y) {
      for (int x = 0; x < columns_; ++x) {
        const size_t at =
            (static_cast<size_t>(t) * static_cast<size_t>(rows_) + static_cast<size_t>(y)) *
                static_cast<size_t>(columns_) +
            static_cast<size_t>(x);
        canvas.fill(cell(t, y, x), weight_colour(volume.video[at], range));
      }
    }
  }
}

void Filmstrip::draw_query(Canvas& canvas, const QueryVolume& volume) const {
  if (!volume.query) return;
  const auto& [t, y, x] = *volume.query;
  const PixelRect at = cell(t, y, x);
  const int thickness = cell_ >= 12 ? 3 : 2;
  // The dark rim keeps the outline visible on bright cells.
  canvas.outline(at, thickness + 1, kBackground);
  canvas.outline(at, thickness, kQuery);
}

void Filmstrip::draw_colour_bar(Canvas& canvas, const WeightRange& range) const {
  const int top = cell(0, 0, 0).y;
  const int bottom = cell(static_cast<int64_t>(per_line_) * (lines_ - 1), 0, 0).y + frame_height();
  const PixelRect bar{frames_right() + kBarGap, top, kBarWidth, bottom - top};
  canvas.text(bar.x, top - kNumberHeight, volumes_.weighting == "none" ? "weight" : "weight |v|",
              kTextScale, kQuietText);
  const double octaves = std::log2(range.high / range.low);
  for (int y = 0; y < bar.height; ++y) {
    const double unit = (bar.height - 0.5 - y) / bar.height;
    canvas.fill({bar.x, top + y, bar.width, 1},
                weight_colour(range.low * std::exp2(unit * octaves), range));
  }
  const double per_tick = octaves * (kTextHeight + 14) / bar.height;
  const int step = std::max(1, static_cast<int>(std::ceil(per_tick)));
  const auto first = static_cast<int>(std::ceil(std::log2(range.low)));
  for (int exponent = first; exponent <= std::log2(range.high); ++exponent) {
    if (exponent % step != 0) continue;
    const double unit = (exponent - std::log2(range.low)) / octaves;
    const int y = bottom - static_cast<int>(std::lround(unit * bar.height));
    canvas.fill({bar.x + bar.width, y, 6, 1}, kQuietText);
    canvas.text(bar.x + bar.width + 12, std::clamp(y - kTextHeight / 2, top, bottom - kTextHeight),
                power_text(exponent), kTextScale, kText);
  }
}

}  // namespace attnscope
