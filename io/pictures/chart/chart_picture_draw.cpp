#include "io/pictures/chart/chart_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attnscope {
namespace {

/// A line's width and a dot's, by the height of the text.
double line_width(const PictureStyle& style) { return std::max(1.0, style.text_height / 8.0); }
double dot_width(const PictureStyle& style) { return std::max(2.5, style.text_height / 3.0); }

void draw_dot(Canvas& canvas, PixelPoint at, double width, Rgb colour) {
  canvas.polyline(std::array{at}, width, colour);
}

}  // namespace

Canvas ChartPicture::draw() const {
  Canvas canvas(width_, height_, style_);
  draw_rules(canvas);
  for (const ChartSeries& series : chart_.series) draw_bars(canvas, series);
  for (const ChartSeries& series : chart_.series) draw_lines(canvas, series);
  const int thin = style_.px(1);
  canvas.fill({frame_.x, frame_.y, thin, frame_.height}, style_.quiet_text);
  canvas.fill({frame_.x, frame_.y + frame_.height, frame_.width, thin}, style_.quiet_text);
  draw_legend(canvas);
  for (const PlacedText& text : texts_) {
    canvas.text(text.box.x, text.box.y, text.text, text.box.height, text.colour);
  }
  return canvas;
}

/// The rules of the y axis and of the marks, and the x axis's ticks.
void ChartPicture::draw_rules(Canvas& canvas) const {
  const int thin = style_.px(1);
  for (const int y : y_ticks_) canvas.fill({frame_.x, y, frame_.width, thin}, style_.rule);
  for (const ChartMark& mark : chart_.marks) {
    const int x = frame_.x + static_cast<int>(std::lround(x_.unit(mark.at) * frame_.width));
    canvas.fill({x, frame_.y, thin, frame_.height}, style_.rule);
  }
  const int tick = style_.text_gap / 3;
  for (const int x : x_ticks_) {
    canvas.fill({x, frame_.y + frame_.height, thin, tick}, style_.quiet_text);
  }
}

void ChartPicture::draw_bars(Canvas& canvas, const ChartSeries& series) const {
  for (size_t i = 0; i < series.bases.size(); ++i) {
    const ChartPoint point = series.points[i];
    if (!y_.shows(point.y) || !y_.shows(series.bases[i])) continue;
    const PixelPoint top = place({point.x - series.bar_width / 2, point.y});
    const PixelPoint end = place({point.x + series.bar_width / 2, series.bases[i]});
    const auto pixel = [](double value) { return static_cast<int>(std::lround(value)); };
    canvas.fill({pixel(top.x), pixel(top.y), std::max(1, pixel(end.x) - pixel(top.x)),
                 pixel(end.y) - pixel(top.y)},
                colour_of(series));
  }
}

void ChartPicture::draw_lines(Canvas& canvas, const ChartSeries& series) const {
  if (!series.bases.empty()) return;
  const Rgb colour = colour_of(series);
  std::vector<PixelPoint> line;
  const auto end_line = [&] {
    if (series.line && line.size() > 1) canvas.polyline(line, line_width(style_), colour);
    // A point between two gaps has no line to be seen by.
    if (series.line && !series.dots && line.size() == 1) {
      draw_dot(canvas, line.front(), dot_width(style_), colour);
    }
    line.clear();
  };
  for (const ChartPoint& point : series.points) {
    if (x_.shows(point.x) && y_.shows(point.y)) {
      line.push_back(place(point));
      if (series.dots) draw_dot(canvas, line.back(), dot_width(style_), colour);
    } else {
      end_line();
    }
  }
  end_line();
}

void ChartPicture::draw_legend(Canvas& canvas) const {
  for (const Swatch& swatch : swatches_) {
    const PixelRect& box = swatch.box;
    const Rgb colour = colour_of(*swatch.series);
    const double middle = box.y + box.height / 2.0;
    if (!swatch.series->bases.empty()) {
      canvas.fill(box, colour);
      continue;
    }
    if (swatch.series->line) {
      canvas.polyline(std::array{PixelPoint{static_cast<double>(box.x), middle},
                                 PixelPoint{static_cast<double>(box.x + box.width), middle}},
                      line_width(style_), colour);
    }
    if (swatch.series->dots) {
      draw_dot(canvas, {box.x + box.width / 2.0, middle}, dot_width(style_), colour);
    }
  }
  for (int x = 0; x < depth_bar_.width; ++x) {
    canvas.fill({depth_bar_.x + x, depth_bar_.y, 1, depth_bar_.height},
                depth_colour((x + 0.5) / depth_bar_.width));
  }
}

}  // namespace attnscope
