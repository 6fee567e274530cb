#include "io/pictures/matrix_picture.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kMapSide = 1120;
constexpr int kMostMatrixCell = 48;
constexpr int kBand = 6;
constexpr int kBandGap = 6;
constexpr int kLabelGap = 12;

int map_side_cell(const PooledMap& map, const PictureStyle& look) {
  return static_cast<int>(std::clamp<int64_t>(
      look.px(kMapSide) / std::max<int64_t>({map.rows, map.cols, 1}), 1, look.px(kMostMatrixCell)));
}

int widest(const std::vector<AxisLabel>& labels, std::string_view heading, int cap_height) {
  int width = text_width(heading, cap_height);
  for (const AxisLabel& label : labels) {
    width = std::max(width, text_width(label.text, cap_height));
  }
  return width;
}

Rgb band_colour(int64_t frame, const PictureStyle& look) {
  if (frame < 0) return look.text_band;
  return frame % 2 == 0 ? look.even_band : look.odd_band;
}

}  // namespace

std::string pooling_text(const PooledMap& map, Pool pool) {
  if (map.block_rows == 1 && map.block_cols == 1) return "single weights";
  return fmt::format("{} of {}×{} blocks", pool_name(pool), map.block_rows, map.block_cols);
}

MatrixPicture::MatrixPicture(const MatrixContent& content)
    : content_(content),
      look_(content.look),
      text_(content.text),
      rows_(content.query_tokens, content.rows, content.map.block_rows, 1),
      cols_(content.key_tokens, content.cols, content.map.block_cols, 1) {
  const PooledMap& map = content.map;
  if (map.rows != rows_.cells() || map.cols != cols_.cells()) {
    throw usage_error(fmt::format("a matrix picture of {}×{} cells got a map of {}×{}",
                                  rows_.cells(), cols_.cells(), map.rows, map.cols));
  }
  const bool single = map.block_rows == 1 && map.block_cols == 1;
  const std::string cells = !content.cell_text.empty() ? content.cell_text
                            : single                   ? "single " + content.value_name + "s"
                                                       : pooling_text(map, content.pool);
  text_.lines.push_back(
      joined_parts({cells, "exact", content.domain,
                    std::string(scale_kind_name(content.colours.scale)) + " colours"}));
  const int usual = map_side_cell(map, look_);
  const int cell = fitting_cell(
      look_, usual, look_.px(kMostMatrixCell), [this](int side) { return lay_out(side); },
      "take fewer cells with a larger --block or --rows and --cols");
  lay_out(cell);
  if (look_.page_width > 0) width_ = look_.page_width;
}

/// Places everything for cells of that side; gives the page that they need.
PageSize MatrixPicture::lay_out(int cell) {
  rows_ = MatrixAxis(content_.query_tokens, content_.rows, content_.map.block_rows, cell);
  cols_ = MatrixAxis(content_.key_tokens, content_.cols, content_.map.block_cols, cell);
  const int text = look_.text_height, band = look_.px(kBand), gap = look_.px(kBandGap);
  name_width_ = widest(rows_.names(), "", text);
  // Without names of frames both headings stand in one line.
  number_width_ = widest(rows_.numbers(), cols_.names().empty() ? "query  key" : "query", text) +
                  (cols_.names().empty() ? 2 * look_.px(kLabelGap) : 0);
  left_ = look_.margin + (name_width_ > 0 ? name_width_ + look_.px(kLabelGap) : 0) + number_width_ +
          gap + band + gap;
  top_ =
      header_height(text_, look_) + (cols_.names().empty() ? 1 : 2) * line_rise(look_) + band + gap;
  const int right = left_ + cols_.length() + bar_room(look_, content_.value_name);
  width_ = right + look_.margin;
  if (look_.page_width == 0) {
    width_ = std::max(right, look_.margin + header_width(text_, look_)) + look_.margin;
  }
  const int least = look_.legend ? look_.least_bar : 0;
  height_ = top_ + std::max(rows_.length(), least) + look_.margin;
  return {width_, height_};
}

PixelRect MatrixPicture::cell(int64_t row, int64_t col) const {
  return {left_ + cols_.pixel(col), top_ + rows_.pixel(row), cols_.cell_pixels(),
          rows_.cell_pixels()};
}

Canvas MatrixPicture::draw() const {
  const size_t values = content_.map.values(content_.pool).size();
  if (values != static_cast<size_t>(content_.map.rows * content_.map.cols)) {
    throw usage_error(fmt::format("a matrix picture of {}×{} cells needs as many values (got {})",
                                  rows_.cells(), cols_.cells(), values));
  }
  Canvas canvas(width_, height_, look_);
  draw_header(canvas, text_, look_);
  const auto scale = ColourScale::fit(content_.colours, content_.map.values(content_.pool))
                         .with_masked(look_.masked_cell);
  draw_cells(canvas, scale);
  draw_bands(canvas);
  draw_labels(canvas);
  if (!look_.legend) return canvas;
  const PixelRect bar{left_ + cols_.length() + look_.px(kBarGap), top_, look_.px(kBarWidth),
                      std::max(rows_.length(), look_.least_bar)};
  draw_colour_bar(canvas, bar, scale, content_.value_name, look_);
  return canvas;
}

void MatrixPicture::draw_cells(Canvas& canvas, const ColourScale& scale) const {
  canvas.fill({left_, top_, cols_.length(), rows_.length()}, look_.frame_line);
  const std::vector<float>& values = content_.map.values(content_.pool);
  size_t at = 0;
  for (int64_t r = 0; r < content_.map.rows; ++r) {
    for (int64_t c = 0; c < content_.map.cols; ++c) {
      const bool missing = !content_.missing.empty() && content_.missing[at] != 0;
      if (missing) {
        draw_stripes(canvas, cell(r, c), look_);
      } else {
        canvas.fill(cell(r, c), scale.colour(values[at]));
      }
      ++at;
    }
  }
}

void MatrixPicture::draw_bands(Canvas& canvas) const {
  const int band = look_.px(kBand), gap = look_.px(kBandGap);
  for (size_t i = 0; i < rows_.segments().size(); ++i) {
    const int begin = rows_.pixel(rows_.segments()[i].cell);
    canvas.fill({left_ - gap - band, top_ + begin, band, rows_.pixel(rows_.segment_end(i)) - begin},
                band_colour(rows_.segments()[i].frame, look_));
  }
  for (size_t i = 0; i < cols_.segments().size(); ++i) {
    const int begin = cols_.pixel(cols_.segments()[i].cell);
    canvas.fill({left_ + begin, top_ - gap - band, cols_.pixel(cols_.segment_end(i)) - begin, band},
                band_colour(cols_.segments()[i].frame, look_));
  }
}

void MatrixPicture::draw_labels(Canvas& canvas) const {
  const int text = look_.text_height, band = look_.px(kBand), gap = look_.px(kBandGap);
  const int label_gap = look_.px(kLabelGap);
  const auto put_right = [&](int right, int y, const std::string& words, Rgb colour) {
    canvas.text(right - text_width(words, text), y, words, text, colour);
  };
  // Labels of the last columns keep clear of the colour bar's title.
  const int end = look_.legend ? cols_.length() + look_.px(kBarGap) - look_.px(6)
                               : width_ - look_.margin - left_;
  const auto within = [&](std::vector<AxisLabel> labels) {
    std::erase_if(labels, [&](const AxisLabel& label) {
      return label.pixel + text_width(label.text, text) > end;
    });
    return labels;
  };
  const int numbers_y = top_ - gap - band - line_rise(look_);
  const int names_y = numbers_y - line_rise(look_);
  for (const AxisLabel& l : fitting_labels(within(cols_.names()), label_gap, -1, text)) {
    canvas.text(left_ + l.pixel, names_y, l.text, text, look_.text);
  }
  for (const AxisLabel& l : fitting_labels(within(cols_.numbers()), label_gap, -1, text)) {
    canvas.text(left_ + l.pixel, numbers_y, l.text, text, look_.quiet_text);
  }
  const int numbers_right = left_ - gap - band - gap;
  for (const AxisLabel& l : fitting_labels(rows_.numbers(), look_.px(6), text, text)) {
    put_right(numbers_right, top_ + l.pixel, l.text, look_.quiet_text);
  }
  for (const AxisLabel& l : fitting_labels(rows_.names(), look_.px(6), text, text)) {
    canvas.text(look_.margin, top_ + l.pixel, l.text, text, look_.text);
  }
  put_right(left_ - 2 * label_gap, cols_.names().empty() ? numbers_y : names_y, "key", look_.key);
  canvas.text(look_.margin, numbers_y, "query", text, look_.query);
}

}  // namespace attnscope
