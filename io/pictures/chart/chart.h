#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "io/pictures/colour_scale.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartAxis {
  /// A place that is told by a name.
  struct Name {
    double at = 0;
    std::string text;
  };
  std::string title;  ///< in words, with the unit
  bool log = false;
  bool shares = false;              ///< values of 0 … 1 are told in per cent
  std::optional<ValueRange> range;  ///< nothing: that of what is drawn
  std::vector<Name> names;          ///< ascending, instead of numbers; one unit apart
};

/// Points of one name and colour.
struct ChartSeries {
  std::string name;                ///< in the legend; empty: not there
  std::vector<ChartPoint> points;  ///< a NaN breaks the line
  bool line = true, dots = false;
  /// Where each point's bar begins, which ends at its y and is `bar_width` wide, the point in its
  /// middle; empty: there are no bars.
  std::vector<double> bases = {};
  double bar_width = 0.8;
  size_t colour = 0;            ///< of PictureStyle::curve()
  std::optional<Rgb> own;       ///< a colour that means something everywhere, instead
  std::optional<double> depth;  ///< a place on the chart's colour bar, 0 … 1, instead
  bool quiet = false;           ///< grey instead
};

/// A place of the x axis, where a part of it begins: a rule, and its name above.
struct ChartMark {
  double at = 0;
  std::string text;
};

/// A chart's colour bar, instead of a legend of very many series.
struct ChartDepth {
  std::string title;
  std::string low, high;  ///< the names at its ends
};

/// Numbers over numbers: lines, dots and bars in one frame.
struct Chart {
  PictureText text;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  std::vector<ChartMark> marks;  ///< ascending
  std::optional<ChartDepth> depth;
};

}  // namespace attnscope
