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
constexpr int kLeastFrame = 24, kMostFrame = 100;
/// Wider labels lose their beginning.
constexpr int kMostLabel = 400;
/// A page may be so many times as high as it is wide.
constexpr int kMostHigh = 3;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
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
  // A side of which all is left out is told above.
  for (std::string& text : result.texts) {
    if (text.ends_with(kMinus)) text.erase(text.size() - std::min(text.size(), kMinus.size() + 1));
  }
  return result;
}

/// "t 0 to 20, line by line"
std::string frames_text(const std::vector<int64_t>& frames, const FilmStyle& style) {
  const int64_t first = style.first_frame;
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
  width_ = look.page_width > 0 ? look.page_width
                               : std::max(films, header_width(text_, look)) + 2 * look.margin;
}

void FilmGrid::find_texts() {
  const PictureStyle& look = style_.look;
  std::vector<std::string> labels;
  for (const QueryVolume& volume : volumes_.volumes) labels.push_back(volume.label);
  ShortTexts found = shortened(labels);
  labels_ = std::move(found.texts);
  // Of words that are no facts nobody misses any.
  const bool has_facts = found.common.find_first_of("0123456789") != std::string::npos;
  style_.about =
      joined_parts({has_facts ? "all of " + found.common : "", style_.about,
                    frames_text(frames_, style_), one_range() ? "" : "each film in its own range"});
  text_ = film_header(volumes_, style_);
  for (const std::string& label : labels_) {
    label_width_ = std::max(label_width_, text_width(label, look.text_height));
  }
  label_width_ = std::min({label_width_, look.px(kMostLabel), inner_width()});
  top_ = header_height(text_, look) + legend_height();
}

int FilmGrid::inner_width() const {
  const PictureStyle& look = style_.look;
  return look.page_width > 0 ? std::max(1, look.page_width - 2 * look.margin)
                             : look.px(kInnerWidth);
}

int FilmGrid::legend_height() const {
  const PictureStyle& look = style_.look;
  return look.legend ? look.text_height + look.px(kFilmGap) : 0;
}

int FilmGrid::film_width(int cell, int per_line) const {
  const int gap = style_.look.px(kGridFrameGap);
  const int frames = per_line * (static_cast<int>(volumes_.grid[2]) * cell + gap) - gap;
  return std::max(frames, label_width_);
}

int FilmGrid::film_height(const Shape& shape) const {
  const PictureStyle& look = style_.look;
  const int frame = static_cast<int>(volumes_.grid[1]) * shape.cell;
  return look.text_height + look.px(kGridLabelGap) +
         shape.lines * (frame + look.px(kGridFrameGap)) + look.px(kFilmGap) -
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
  const int least = std::max(1, (look.px(kLeastFrame) + side - 1) / side);
  const int wide = inner_width() + 2 * look.margin;
  const int high = look.page_height > 0 ? look.page_height : wide;
  for (int cell = std::max(least, look.px(kMostFrame) / side); cell >= least; --cell) {
    shape_ = shape_of(cell);
    if (film_width(cell, shape_.per_line) <= inner_width() && height() <= high) return;
  }
  check_shape(wide);
}

/// Throws Error(usage) where the page of the smallest cells is none that one looks at.
void FilmGrid::check_shape(int wide) const {
  const PictureStyle& look = style_.look;
  const std::string way_out = fmt::format(
      "choose {} or fewer --frames, or give --columns or --cell for large strips", style_.fewer);
  const int needed = film_width(shape_.cell, shape_.per_line) + 2 * look.margin;
  check_page(look, {needed, height()}, way_out);
  if (needed <= wide && height() <= kMostHigh * wide) return;
  throw usage_error(fmt::format(
      "{} films of {} frames make a picture of {} × {} pixels even if they are small (at most {} "
      "times as high as wide): {}",
      volumes_.volumes.size(), frames_.size(), std::max(needed, wide), height(), kMostHigh,
      way_out));
}

PixelRect FilmGrid::frame(size_t i) const {
  const PictureStyle& look = style_.look;
  const int width = static_cast<int>(volumes_.grid[2]) * shape_.cell;
  const int height = static_cast<int>(volumes_.grid[1]) * shape_.cell;
  const int line = static_cast<int>(i) / shape_.per_line,
            place = static_cast<int>(i) % shape_.per_line;
  return {place * (width + look.px(kGridFrameGap)),
          look.text_height + look.px(kGridLabelGap) + line * (height + look.px(kGridFrameGap)),
          width, height};
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
            Canvas header(width_, top_, style_.look);
            draw_header(header, text_, style_.look);
            draw_legend(header);
            take(header);
            const auto across = static_cast<size_t>(shape_.across);
            for (size_t first = 0; first < volumes_.volumes.size(); first += across) {
              Canvas band(width_, film_height(shape_), style_.look);
              const size_t end = std::min(first + across, volumes_.volumes.size());
              for (size_t volume = first; volume < end; ++volume) draw_film(band, volume);
              take(band);
            }
          }};
}

/// One line: from the colour of the low end to that of the high one.
void FilmGrid::draw_legend(Canvas& canvas) const {
  const PictureStyle& look = style_.look;
  if (!look.legend) return;
  const RangeChoice& range = style_.colours.range;
  const int y = header_height(text_, look);
  int x = look.margin;
  const auto put = [&](std::string_view words, Rgb colour) {
    canvas.text(x, y, words, look.text_height, colour);
    x += text_width(words, look.text_height) + look.px(10);
  };
  put(style_.unit, look.quiet_text);
  if (one_range() && range.low == range.high) {
    for (const std::string_view word : words_of_nothing(style_.colours.map)) put(word, look.text);
    return;
  }
  const std::vector<double> values{range.low, range.high};
  const std::vector<std::string> ends =
      one_range() ? tick_words(values) : std::vector<std::string>{"low", "high"};
  put(ends.front(), look.text);
  const int length = std::min(look.px(kLegendBar), inner_width() / 3);
  for (int i = 0; i < length; ++i) {
    canvas.fill({x + i, y, 1, look.text_height},
                colormap_at(style_.colours.map, (i + 0.5) / length));
  }
  x += length + look.px(10);
  put(ends.back(), look.text);
}

void FilmGrid::draw_film(Canvas& canvas, size_t number) const {
  const PictureStyle& look = style_.look;
  const QueryVolume& volume = volumes_.volumes[number];
  const ColourScale scale =
      ColourScale::fit(style_.colours, volume.video).with_masked(look.masked_cell);
  const FilmOver over = film_over_of(style_, volume);
  const int left = cell(number, frames_.front(), 0, 0).x;
  const int width = film_width(shape_.cell, shape_.per_line);
  const std::string mean = mean_words(volumes_, volume);
  // Beside all labels or none.
  const int widest =
      label_width_ + text_width(" mean " + widest_number(volumes_, look), look.text_height);
  const std::string label = labels_[number] + (mean.empty() || widest > width ? "" : " " + mean);
  canvas.text(left, 0, elided_front(label, width, look.text_height), look.text_height, look.text);
  for (size_t i = 0; i < frames_.size(); ++i) {
    const PixelRect at = frame(i);
    draw_film_frame(canvas,
                    {left + at.x, at.y, static_cast<int>(volumes_.grid[1]),
                     static_cast<int>(volumes_.grid[2]), shape_.cell},
                    {volumes_, volume, frames_[i]}, scale, style_, over);
  }
}

}  // namespace attnscope
