#include "io/pictures/film/film_grid.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/film/film_frame.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

// Lengths in the dark style.
constexpr int kInnerWidth = 1680;
constexpr int kGridFrameGap = 4;
constexpr int kGridLabelGap = 8;
constexpr int kFilmGap = 24;
constexpr int kLegendBar = 160;
/// A frame's longer side: smaller ones are specks, larger ones no part of an overview.
constexpr int kLeastFilmFrame = 24, kMostFrame = 100;
constexpr int kLegendGap = 10;
/// Wider labels have more than one line.
constexpr int kMostLabel = 400;
/// A page may be so many times as high as it is wide.
constexpr int kMostHigh = 3;

/// Behind the labels of films that have no range of their own.
constexpr std::string_view kOfNothingMark = "*";

/// A text in quotes, which stands alone in a label, is one word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t from = text[at] == '"' ? text.rfind('"') : at;
    const size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(at, end - at);
    if (!word.empty() && word != "·") words.push_back(word);
    at = end + 1;
  }
  return words;
}

/// Between the sides of a difference.
constexpr std::string_view kMinus = "−";

/// Texts without the words that all have at the same place, but for names before what differs:
/// "layer 2 head 3" of "step 0 layer 2 joint head 3". Of differences each side for itself.
struct ShortTexts {
  std::vector<std::string> texts;
  std::string common;  ///< what was left out
};

ShortTexts shortened(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> words;
  for (const std::string& text : texts) words.push_back(words_of(text));
  const size_t count = words.front().size();
  for (const auto& each : words) {
    if (each.size() != count) return {texts, ""};
  }
  std::vector<bool> differs(count + 1, false);
  for (const auto& each : words) {
    for (size_t i = 0; i < count; ++i) {
      if (each[i] != words.front()[i]) differs[i] = true;
    }
  }
  ShortTexts result{std::vector<std::string>(texts.size()), ""};
  for (size_t i = 0; i < count; ++i) {
    const auto add = [&](std::string& text, const std::string& word) {
      text += (text.empty() ? "" : " ") + word;
    };
    if (!differs[i] && !differs[i + 1]) {
      add(result.common, words.front()[i]);
      if (words.front()[i] != kMinus) continue;
    }
    for (size_t v = 0; v < texts.size(); ++v) add(result.texts[v], words[v][i]);
  }
  const auto end_side = [](std::string& text) {
    if (text.ends_with(kMinus)) text.erase(text.size() - std::min(text.size(), kMinus.size() + 1));
  };
  // A side of which all is left out is told above, one without anything left out below.
  for (std::string& text : result.texts) end_side(text);
  end_side(result.common);
  return result;
}

/// The widest of the pieces between blanks, at which lines are broken.
int widest_word(const std::string& text, int cap_height) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    width = std::max(width, text_width(text.substr(at, end - at), cap_height));
    at = end + 1;
  }
  return width;
}

/// "t 0 to 20, line by line"; of one "t 3".
std::string frames_text(const std::vector<int64_t>& frames, const FilmStyle& style) {
  const int64_t first = style.first_frame;
  if (frames.size() == 1) return fmt::format("{} {}", style.frame_name, first + frames.front());
  if (frames.back() - frames.front() + 1 == std::ssize(frames)) {
    return fmt::format("{} {} to {}, line by line", style.frame_name, first + frames.front(),
                       first + frames.back());
  }
  std::string list;
  for (const int64_t t : frames) list += fmt::format("{}{}", list.empty() ? "" : ", ", first + t);
  return fmt::format("{} {}, line by line", style.frame_name, list);
}

}  // namespace

bool FilmGrid::suits(const QueryVolumes& volumes, const FilmStyle& style) {
  return volumes.volumes.size() > kMostStrips && style.look.cell == 0 && style.columns == 0;
}

FilmGrid::FilmGrid(const QueryVolumes& volumes, FilmStyle style)
    : volumes_(volumes), style_(std::move(style)), frames_(drawn_frames(style_, volumes.grid[0])) {
  find_texts();
  choose_shape();
  const PictureStyle& look = style_.look;
  const int films = shape_.across * (film_width(shape_.cell, shape_.per_line) + look.px(kFilmGap)) -
                    look.px(kFilmGap);
  width_ = look.page_width > 0
               ? look.page_width
               : std::max({look.margin + films, look.margin + header_width(text_, look),
                           legend_right_}) +
                     look.margin;
}

void FilmGrid::find_texts() {
  const PictureStyle& look = style_.look;
  std::vector<std::string> labels;
  for (const QueryVolume& volume : volumes_.volumes) labels.push_back(volume.label);
  const ShortTexts found = shortened(labels);
  style_.about =
      joined_parts({found.common.empty() ? "" : "all of " + found.common, style_.about,
                    frames_text(frames_, style_), one_range() ? "" : "each film in its own range"});
  text_ = film_header(volumes_, style_);
  top_ = header_height(text_, look);
  find_labels(found.texts);
  if (!look.legend) return;
  const std::vector<LegendPart> legend = placed(widest_legend());
  for (const LegendPart& part : legend) {
    legend_width_ = std::max(legend_width_, part.width);
    legend_right_ = std::max(legend_right_, part.x + part.width);
  }
  top_ = legend.back().y + look.text_height + look.px(kFilmGap);
}

void FilmGrid::find_labels(const std::vector<std::string>& labels) {
  const PictureStyle& look = style_.look;
  int widest = 0, word = 0;
  for (const std::string& label : labels) {
    widest = std::max(widest, text_width(label, look.text_height));
    word = std::max(word, widest_word(label, look.text_height));
  }
  // Between films and on most pages' margins there is room for it.
  const bool marks = look.legend && !one_range();
  const int mark =
      marks ? std::max(0, text_width(kOfNothingMark, look.text_height) - look.margin) : 0;
  const int most = std::min(look.px(kMostLabel), inner_width()) - mark;
  const int width = std::max(word, std::min(widest, most));
  for (const std::string& label : labels) {
    labels_.push_back(wrapped_words(label, width, look.text_height));
    label_lines_ = std::max(label_lines_, static_cast<int>(labels_.back().size()));
  }
  label_width_ = width + mark;
}

int FilmGrid::inner_width() const {
  const PictureStyle& look = style_.look;
  return look.page_width > 0 ? std::max(1, look.page_width - 2 * look.margin)
                             : look.px(kInnerWidth);
}

/// From a film's top to its first line of frames.
int FilmGrid::label_height() const {
  const PictureStyle& look = style_.look;
  return (label_lines_ - 1) * line_rise(look) + look.text_height + look.px(kGridLabelGap);
}

int FilmGrid::film_width(int cell, int per_line) const {
  const int gap = style_.look.px(kGridFrameGap);
  const int frames = per_line * (static_cast<int>(volumes_.grid[2]) * cell + gap) - gap;
  return std::max(frames, label_width_);
}

int FilmGrid::film_height(const Shape& shape) const {
  const PictureStyle& look = style_.look;
  const int frame = static_cast<int>(volumes_.grid[1]) * shape.cell;
  return label_height() + shape.lines * (frame + look.px(kGridFrameGap)) + look.px(kFilmGap) -
         look.px(kGridFrameGap);
}

int FilmGrid::height_of(const Shape& shape) const {
  const auto count = static_cast<int>(volumes_.volumes.size());
  return top_ + (count + shape.across - 1) / shape.across * film_height(shape);
}

/// Of the shapes with such cells the one with the lowest page; of equal ones the films with the
/// longest lines.
FilmGrid::Shape FilmGrid::shape_of(int cell) const {
  const auto count = static_cast<int>(frames_.size());
  const int gap = style_.look.px(kFilmGap);
  Shape best{cell, 1, count, 1};
  int least = 0;
  for (int n = count; n >= 1; --n) {
    const int lines = (count + n - 1) / n;
    // Lines of equal length look calmer than full ones and a rest.
    if ((count + lines - 1) / lines != n) continue;
    const int across = (inner_width() + gap) / (film_width(cell, n) + gap);
    if (across < 1) continue;
    const auto films = static_cast<int>(volumes_.volumes.size());
    const Shape shape{cell, n, lines, std::min(across, films)};
    if (least > 0 && height_of(shape) >= least) continue;
    least = height_of(shape);
    best = shape;
  }
  return best;
}

void FilmGrid::choose_shape() {
  const PictureStyle& look = style_.look;
  const auto side = static_cast<int>(std::max(volumes_.grid[1], volumes_.grid[2]));
  const int least = std::max(1, (look.px(kLeastFilmFrame) + side - 1) / side);
  const int wide = inner_width() + 2 * look.margin;
  const int high = look.page_height > 0 ? look.page_height : wide;
  for (int cell = std::max(least, look.px(kMostFrame) / side); cell >= least; --cell) {
    shape_ = shape_of(cell);
    const int across = std::max(film_width(cell, shape_.per_line), legend_width_);
    if (across <= inner_width() && height() <= high) return;
  }
  check_shape(wide);
}

/// Throws Error(usage) where the page of the smallest cells is none that one looks at.
void FilmGrid::check_shape(int wide) const {
  const PictureStyle& look = style_.look;
  const std::string way_out = fmt::format(
      "choose {} or fewer --frames, or give --columns or --cell for large strips", style_.fewer);
  const int needed =
      std::max(film_width(shape_.cell, shape_.per_line), legend_width_) + 2 * look.margin;
  check_page(look, {needed, height()}, way_out);
  if (needed <= wide && height() <= kMostHigh * wide) return;
  throw usage_error(fmt::format(
      "{} films of {} frame{} make a picture of {} × {} pixels even if they are small (at most {} "
      "times as high as wide): {}",
      volumes_.volumes.size(), frames_.size(), frames_.size() == 1 ? "" : "s",
      std::max(needed, wide), height(), kMostHigh, way_out));
}

PixelRect FilmGrid::frame(size_t i) const {
  const PictureStyle& look = style_.look;
  const int width = static_cast<int>(volumes_.grid[2]) * shape_.cell;
  const int height = static_cast<int>(volumes_.grid[1]) * shape_.cell;
  const int line = static_cast<int>(i) / shape_.per_line,
            place = static_cast<int>(i) % shape_.per_line;
  return {place * (width + look.px(kGridFrameGap)),
          label_height() + line * (height + look.px(kGridFrameGap)), width, height};
}

PixelRect FilmGrid::cell(size_t volume, int64_t t, int64_t y, int64_t x) const {
  const PictureStyle& look = style_.look;
  const auto i =
      static_cast<size_t>(std::lower_bound(frames_.begin(), frames_.end(), t) - frames_.begin());
  const PixelRect at = frame(i);
  const auto across = static_cast<size_t>(shape_.across);
  const int left = static_cast<int>(volume % across) *
                   (film_width(shape_.cell, shape_.per_line) + look.px(kFilmGap));
  return {look.margin + left + at.x + static_cast<int>(x) * shape_.cell,
          top_ + static_cast<int>(volume / across) * film_height(shape_) + at.y +
              static_cast<int>(y) * shape_.cell,
          shape_.cell, shape_.cell};
}

int64_t FilmGrid::band_bytes() const {
  return int64_t{width_} * std::max(top_, film_height(shape_)) * static_cast<int64_t>(sizeof(Rgb));
}

PageBands FilmGrid::page() const {
  return {width_, height(), [this](const TakeBand& take) {
            const std::vector<ColourScale> scales = film_scales(volumes_, style_);
            take(header(scales));
            const auto across = static_cast<size_t>(shape_.across);
            for (size_t first = 0; first < scales.size(); first += across) {
              Canvas band(width_, film_height(shape_), style_.look);
              const size_t end = std::min(first + across, scales.size());
              for (size_t volume = first; volume < end; ++volume) {
                draw_film(band, volume, scales[volume]);
              }
              take(band);
            }
          }};
}

FilmGrid::LegendPart FilmGrid::legend_text(std::string words) const {
  const int width = text_width(words, style_.look.text_height);
  return {std::move(words), width};
}

/// Parts as wide as they may become: a page is laid out before there are values.
std::vector<FilmGrid::LegendPart> FilmGrid::widest_legend() const {
  const LegendPart bar{"", std::min(style_.look.px(kLegendBar), inner_width() / 3)};
  if (!one_range()) {
    return {legend_text(style_.unit), legend_text("low"),       bar,
            legend_text("high"),      legend_text("* nothing"), legend_text("to scale")};
  }
  std::vector<LegendPart> parts{legend_text(style_.unit), legend_text("-0.00×10⁻⁵⁵"), bar, {}};
  for (const std::string& end : range_ends()) {
    parts[1].width = std::max(parts[1].width, legend_text(end).width);
  }
  parts[3] = parts[1];
  return parts;
}

std::vector<std::string> FilmGrid::range_ends() const {
  const RangeChoice& range = style_.colours.range;
  return tick_words(std::vector<double>{range.low, range.high});
}

/// One range from the colour of its low end to that of the high one, or of each film its own.
std::vector<FilmGrid::LegendPart> FilmGrid::legend_of(
    const std::vector<ColourScale>& scales) const {
  std::vector<LegendPart> parts = widest_legend();
  if (!one_range()) {
    const auto is_of_nothing = [](const ColourScale& scale) { return scale.is_of_nothing(); };
    if (std::none_of(scales.begin(), scales.end(), is_of_nothing)) parts.resize(4);
    return parts;
  }
  const auto told = std::find_if(scales.begin(), scales.end(),
                                 [](const ColourScale& scale) { return scale.has_values(); });
  const ColourScale& scale = told == scales.end() ? scales.front() : *told;
  if (scale.is_of_nothing()) {
    const auto words = words_of_nothing(scale);
    return {parts[0], legend_text(std::string(words[0])), legend_text(std::string(words[1]))};
  }
  const std::vector<std::string> ends = range_ends();
  return {parts[0], legend_text(ends[0]), parts[2], legend_text(ends[1])};
}

/// The parts from left to right, in as many lines as they need.
std::vector<FilmGrid::LegendPart> FilmGrid::placed(std::vector<LegendPart> parts) const {
  const PictureStyle& look = style_.look;
  int x = look.margin, y = header_height(text_, look);
  for (LegendPart& part : parts) {
    if (x > look.margin && x + part.width > look.margin + inner_width()) {
      x = look.margin;
      y += line_rise(look);
    }
    part.x = x;
    part.y = y;
    x += part.width + look.px(kLegendGap);
  }
  return parts;
}

Canvas FilmGrid::header(const std::vector<ColourScale>& scales) const {
  const PictureStyle& look = style_.look;
  Canvas canvas(width_, top_, look);
  draw_header(canvas, text_, look);
  if (!look.legend) return canvas;
  const std::vector<LegendPart> parts = placed(legend_of(scales));
  for (const LegendPart& part : parts) {
    if (!part.words.empty()) {
      const bool is_unit = &part == &parts.front();
      canvas.text(part.x, part.y, part.words, look.text_height,
                  is_unit ? look.quiet_text : look.text);
      continue;
    }
    for (int i = 0; i < part.width; ++i) {
      canvas.fill({part.x + i, part.y, 1, look.text_height},
                  colormap_at(style_.colours.map, (i + 0.5) / part.width));
    }
  }
  return canvas;
}

void FilmGrid::draw_film(Canvas& canvas, size_t number, const ColourScale& scale) const {
  const PictureStyle& look = style_.look;
  const QueryVolume& volume = volumes_.volumes[number];
  const FilmOver over = film_over_of(style_, volume);
  const int left = cell(number, frames_.front(), 0, 0).x;
  const int width = film_width(shape_.cell, shape_.per_line);
  const std::string mean = mean_words(volumes_, volume);
  // Beside all labels or none.
  const int widest =
      label_width_ + text_width(" mean " + widest_number(volumes_, look), look.text_height);
  std::vector<std::string> label = labels_[number];
  if (!mean.empty() && widest <= width) label.back() += " " + mean;
  if (look.legend && !one_range() && scale.is_of_nothing()) label.back() += kOfNothingMark;
  for (size_t line = 0; line < label.size(); ++line) {
    canvas.text(left, static_cast<int>(line) * line_rise(look), label[line], look.text_height,
                look.text);
  }
  for (size_t i = 0; i < frames_.size(); ++i) {
    const PixelRect at = frame(i);
    draw_film_frame(canvas,
                    {left + at.x, at.y, static_cast<int>(volumes_.grid[1]),
                     static_cast<int>(volumes_.grid[2]), shape_.cell},
                    {volumes_, volume, frames_[i]}, scale, style_, over);
  }
}

}  // namespace attnscope
