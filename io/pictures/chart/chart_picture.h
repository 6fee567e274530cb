#pragma once

#include <string>
#include <vector>

#include "io/pictures/canvas.h"
#include "io/pictures/chart/chart.h"
#include "io/pictures/chart/chart_axis.h"
#include "io/pictures/picture_style.h"

namespace attnscope {

/// A line of text on a picture.
struct PlacedText {
  PixelRect box;  ///< as wide as the text, as high as its capitals
  std::string text;
  Rgb colour;
};

/// A picture of a chart: title and lines, a legend that lies beside the data, the title of the y
/// axis above it, the frame, labels of the axes, of which as many stand as there is room for, the
/// title of the x axis below. As wide and high as the style says; by itself 85 mm for paper, else
/// 64 capitals. Borrows the chart and the style.
class ChartPicture {
 public:
  /// Throws Error(usage) where the style's height leaves no room, or its width none for two numbers
  /// beside each axis.
  ChartPicture(const Chart& chart, const PictureStyle& style);
  int width() const { return width_; }
  int height() const { return height_; }
  Canvas draw() const;

  const std::vector<PlacedText>& texts() const { return texts_; }
  /// The frame around the data.
  PixelRect frame() const { return frame_; }
  /// Where a value stands.
  PixelPoint place(ChartPoint point) const;
  Rgb colour_of(const ChartSeries& series) const;

 private:
  struct Swatch {
    PixelRect box;
    const ChartSeries* series = nullptr;
  };

  int text_right() const { return width_ - margin_; }
  void add_text(int x, int y, const std::string& text, int cap_height, Rgb colour);
  int add_lines(int y, const std::string& text, int cap_height, Rgb colour);
  int place_header(int y);
  int place_legend(int y);
  int place_depth(int y);
  std::vector<PlacedText> x_labels(const std::vector<AxisScale::Tick>& ticks, size_t step,
                                   int y) const;
  void place_x_labels(int y);
  void place_y_labels(const std::vector<AxisScale::Tick>& ticks);
  void place_marks(int y);
  void draw_legend(Canvas& canvas) const;
  void draw_rules(Canvas& canvas) const;
  void draw_bars(Canvas& canvas, const ChartSeries& series) const;
  void draw_lines(Canvas& canvas, const ChartSeries& series) const;
  Rgb depth_colour(double unit) const;

  const Chart& chart_;
  const PictureStyle& style_;
  AxisScale x_, y_;
  int width_ = 0, height_ = 0, margin_ = 0;
  PixelRect frame_, depth_bar_;
  std::vector<PlacedText> texts_;
  std::vector<Swatch> swatches_;
  std::vector<int> x_ticks_, y_ticks_;  ///< pixels of the labels that stand
};

}  // namespace attnscope
