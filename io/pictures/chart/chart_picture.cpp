#include "io/pictures/chart/chart_picture.h"

#include <algorithm>
#include <cmath>

#include "io/pictures/picture_page.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr double kPaperInches = 85 / 25.4;
constexpr int kScreenCapitals = 64;
/// The frame's height by the page's width.
constexpr double kFrameHeight = 0.52;
/// In capitals of the text.
constexpr int kLeastChartFrame = 6;
constexpr int kSwatch = 3;
constexpr const char* kWayOut = "a wider page, fewer words, or smaller ones";

std::vector<double> values_of(const Chart& chart, bool of_x) {
  std::vector<double> values;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) values.push_back(of_x ? point.x : point.y);
    if (!of_x) values.insert(values.end(), series.bases.begin(), series.bases.end());
  }
  return values;
}

/// 1, 2, 5, 10, 20 …: the number after one of these.
size_t next_step(size_t step) {
  size_t decade = 1;
  while (step >= 10 * decade) decade *= 10;
  return step < 2 * decade ? 2 * decade : step < 5 * decade ? 5 * decade : 10 * decade;
}

int page_width(const PictureStyle& style) {
  if (style.page_width > 0) return style.page_width;
  if (style.name == StyleName::paper)
    return static_cast<int>(std::lround(kPaperInches * style.dpi));
  return kScreenCapitals * style.text_height;
}

}  // namespace

ChartPicture::ChartPicture(const Chart& chart, const PictureStyle& style)
    : chart_(chart),
      style_(style),
      x_(chart.x, values_of(chart, true)),
      y_(chart.y, values_of(chart, false)),
      width_(page_width(style)),
      margin_(std::min(style.margin, width_ / 16)) {
  const int text = style.text_height, gap = style.text_gap;
  int top = place_header(margin_);
  if (top > margin_) top += gap;
  top = chart.depth ? place_depth(top) : place_legend(top);
  top = add_lines(top, chart.y.title, text, style.quiet_text);
  const int marks_top = top;
  if (!chart.marks.empty()) top += line_rise(style_);
  top += gap / 2;
  const auto title_rows =
      static_cast<int>(wrapped_words(chart.x.title, text_right() - margin_, text).size());
  // A long name may stand below the lowest label of the y axis.
  const int label_gap = gap + text / 2;
  const int below = label_gap + text + gap + title_rows * line_rise(style_) + margin_;
  const int least = kLeastChartFrame * text;
  const int wanted = static_cast<int>(std::lround(kFrameHeight * width_));
  check_page(style, {width_, top + least + below}, kWayOut);
  const int frame_height =
      style.page_height > 0 ? style.page_height - top - below : std::max(wanted, least);
  frame_ = {margin_, top, width_ - 2 * margin_, frame_height};
  height_ = top + frame_height + below;
  place_y_labels(y_.ticks(std::max(2, 2 * frame_height / (7 * text))));
  place_x_labels(top + frame_height + label_gap);
  place_marks(marks_top);
  const size_t first = texts_.size();
  add_lines(top + frame_height + label_gap + text + gap, chart.x.title, text, style.quiet_text);
  // Below the middle of what it is the title of.
  for (size_t i = first; i < texts_.size(); ++i) {
    PixelRect& box = texts_[i].box;
    box.x = std::clamp(frame_.x + (frame_.width - box.width) / 2, margin_,
                       std::max(margin_, text_right() - box.width));
  }
}

PixelPoint ChartPicture::place(ChartPoint point) const {
  return {frame_.x + x_.unit(point.x) * frame_.width,
          frame_.y + (1 - y_.unit(point.y)) * frame_.height};
}

Rgb ChartPicture::depth_colour(double unit) const {
  // The end that is next to the ground's colour is left out.
  const bool is_light = style_.background.g > 128;
  return colormap_at(Colormap::viridis, is_light ? 0.8 * unit : 0.2 + 0.8 * unit);
}

Rgb ChartPicture::colour_of(const ChartSeries& series) const {
  if (series.quiet) return style_.quiet_text;
  if (series.own) return *series.own;
  return series.depth ? depth_colour(*series.depth) : style_.curve(series.colour);
}

void ChartPicture::add_text(int x, int y, const std::string& text, int cap_height, Rgb colour) {
  texts_.push_back({{x, y, text_width(text, cap_height), cap_height}, text, colour});
}

/// Lines from y down over the page's width; returns where they end.
int ChartPicture::add_lines(int y, const std::string& text, int cap_height, Rgb colour) {
  if (text.empty()) return y;
  for (const std::string& line : wrapped_words(text, text_right() - margin_, cap_height)) {
    add_text(margin_, y, line, cap_height, colour);
    y += cap_height + style_.px(8);
  }
  return y;
}

int ChartPicture::place_header(int y) {
  if (style_.title && style_.title->empty()) return y;
  const std::string title = style_.title.value_or(chart_.text.title);
  y = add_lines(y, title, style_.title_height, style_.text);
  for (const std::string& line : chart_.text.lines) {
    y = add_lines(y, line, style_.text_height, style_.quiet_text);
  }
  return y;
}

/// Names in rows above the frame, so that they hide nothing.
int ChartPicture::place_legend(int y) {
  if (!style_.legend) return y;
  const int swatch = kSwatch * style_.text_height, gap = style_.text_gap / 2;
  int x = margin_;
  for (const ChartSeries& series : chart_.series) {
    if (series.name.empty()) continue;
    const std::string name =
        elided(series.name, text_right() - margin_ - swatch - gap, style_.text_height);
    const int wide = swatch + gap + text_width(name, style_.text_height);
    if (x > margin_ && x + wide > text_right()) {
      x = margin_;
      y += line_rise(style_);
    }
    swatches_.push_back({{x, y, swatch, style_.text_height}, &series});
    add_text(x + swatch + gap, y, name, style_.text_height, style_.text);
    x += wide + 2 * style_.text_height;
  }
  return swatches_.empty() ? y : y + line_rise(style_) + style_.text_gap / 3;
}

/// The colour bar, with its ends' names beside it and its title before, or above where the page is
/// narrow.
int ChartPicture::place_depth(int y) {
  if (!style_.legend) return y;
  const int text = style_.text_height, gap = style_.text_gap / 2;
  const int room = text_right() - margin_;
  const std::string low = elided(chart_.depth->low, room / 4, text);
  const std::string high = elided(chart_.depth->high, room / 4, text);
  const int title = text_width(chart_.depth->title, text);
  const int ends = text_width(low, text) + text_width(high, text) + 2 * gap;
  int x = margin_;
  if (chart_.depth->title.empty()) {
    // The names of the ends say all.
  } else if (title + 2 * gap + ends + 4 * text <= room) {
    add_text(x, y, chart_.depth->title, text, style_.quiet_text);
    x += title + 2 * gap;
  } else {
    y = add_lines(y, chart_.depth->title, text, style_.quiet_text);
  }
  add_text(x, y, low, text, style_.text);
  const int bar_x = x + text_width(low, text) + gap;
  depth_bar_ = {bar_x, y, std::min(12 * text, text_right() - bar_x - gap - text_width(high, text)),
                text};
  add_text(bar_x + depth_bar_.width + gap, y, high, text, style_.text);
  return y + line_rise(style_) + style_.text_gap / 3;
}

/// The labels right of which the frame begins from now on.
void ChartPicture::place_y_labels(const std::vector<AxisScale::Tick>& ticks) {
  const int text = style_.text_height, gap = style_.text_gap / 2;
  const auto y_of = [&](const AxisScale::Tick& tick) {
    return frame_.y + static_cast<int>(std::lround((1 - tick.unit) * frame_.height));
  };
  std::vector<AxisScale::Tick> kept;
  for (const AxisScale::Tick& tick : ticks) {
    if (kept.empty() || y_of(tick) + text <= y_of(kept.back()) - text / 2) kept.push_back(tick);
  }
  if (kept.size() < 2 && chart_.y.names.empty()) kept = y_.ends();
  int widest = 0;
  for (const AxisScale::Tick& tick : kept) {
    widest = std::max(widest, text_width(tick.label, text));
  }
  const int right = margin_ + widest;
  for (const AxisScale::Tick& tick : kept) {
    y_ticks_.push_back(y_of(tick));
    add_text(right - text_width(tick.label, text), y_of(tick) - text / 2, tick.label, text,
             style_.text);
  }
  frame_.x = right + gap;
  frame_.width = text_right() - frame_.x;
  // A number that is cut off is another one: the page must be so wide that a quarter is left.
  if (4 * frame_.width <= width_) {
    check_page(style_, {4 * (width_ - frame_.width) / 3 + 2, 0}, kWayOut);
  }
}

/// Labels of every `step`th tick below the frame.
std::vector<PlacedText> ChartPicture::x_labels(const std::vector<AxisScale::Tick>& ticks,
                                               size_t step, int y) const {
  const int text = style_.text_height;
  std::vector<PlacedText> labels;
  for (size_t i = 0; i < ticks.size(); i += step) {
    const std::string label =
        chart_.x.names.empty() ? ticks[i].label : elided(ticks[i].label, frame_.width / 2, text);
    const int wide = text_width(label, text);
    const int middle = frame_.x + static_cast<int>(std::lround(ticks[i].unit * frame_.width));
    const int x = std::clamp(middle - wide / 2, margin_, std::max(margin_, text_right() - wide));
    labels.push_back({{x, y, wide, text}, label, style_.text});
  }
  return labels;
}

/// As many labels as stand side by side: fewer round values, or every second, fifth … of the names.
void ChartPicture::place_x_labels(int y) {
  const int space = style_.text_height;
  /// How many pixels the label lacks beside the one before it.
  const auto lack = [&](const std::vector<PlacedText>& labels, size_t i) {
    return labels[i - 1].box.x + labels[i - 1].box.width + space - labels[i].box.x;
  };
  const auto fits = [&](const std::vector<PlacedText>& labels) {
    for (size_t i = 1; i < labels.size(); ++i) {
      if (lack(labels, i) > 0) return false;
    }
    return true;
  };
  const bool numbers = chart_.x.names.empty();
  int most = std::max(2, frame_.width / (4 * style_.text_height));
  std::vector<AxisScale::Tick> ticks = x_.ticks(most);
  size_t step = 1;
  std::vector<PlacedText> labels = x_labels(ticks, step, y);
  while (!fits(labels) && !chart_.x.log && (!numbers || most > 2)) {
    if (numbers) {
      ticks = x_.ticks(--most);
    } else {
      step = next_step(step);
    }
    labels = x_labels(ticks, step, y);
  }
  // Round values of a log axis come closer to each other below a power of ten.
  for (size_t i = labels.size(); i-- > 1;) {
    while (i > 0 && lack(labels, i) > 0) {
      labels.erase(labels.begin() + static_cast<ptrdiff_t>(--i));
    }
  }
  if (numbers && labels.size() < 2) {
    ticks = x_.ticks(2);
    labels = x_labels(ticks, 1, y);
    if (!fits(labels)) labels = x_labels(ticks = x_.ends(), 1, y);
    // Two stand apart with half the space.
    const int narrow = lack(labels, 1) - space / 2;
    if (narrow > 0) check_page(style_, {width_ + narrow, 0}, kWayOut);
  }
  for (size_t i = 0; i < ticks.size(); i += step) {
    x_ticks_.push_back(frame_.x + static_cast<int>(std::lround(ticks[i].unit * frame_.width)));
  }
  texts_.insert(texts_.end(), labels.begin(), labels.end());
}

/// Names of the parts of the x axis above the frame, each where its part begins, or behind the name
/// before it where it still ends within its part; others that would stand on a name are left out.
void ChartPicture::place_marks(int y) {
  int free = margin_;
  const auto x_of = [&](double at) {
    return frame_.x + static_cast<int>(std::lround(x_.unit(at) * frame_.width));
  };
  for (size_t i = 0; i < chart_.marks.size(); ++i) {
    const ChartMark& mark = chart_.marks[i];
    const bool is_last = i + 1 == chart_.marks.size();
    const int end = is_last ? text_right() : x_of(chart_.marks[i + 1].at);
    const int begin = x_of(mark.at), x = std::max(begin, free);
    const int wide = text_width(mark.text, style_.text_height);
    if (x + wide > (x == begin ? text_right() : end)) continue;
    add_text(x, y, mark.text, style_.text_height, style_.quiet_text);
    free = x + wide + style_.text_height / 2;
  }
}

}  // namespace attnscope
