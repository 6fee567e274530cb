#include "io/pictures/matrix_picture.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/picture_style.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int64_t kMapSide = 1120;
constexpr int64_t kMostMatrixCell = 48;
constexpr int kBand = 6;
constexpr int kBandGap = 6;
constexpr int kLabelGap = 12;
constexpr int kLineHeight = kTextHeight + 8;

constexpr Rgb kFrameLine{0x3c, 0x44, 0x4d};
constexpr Rgb kTextBand{0xb4, 0xbd, 0xc7};
constexpr Rgb kEvenBand{0x4c, 0x55, 0x5f};
constexpr Rgb kOddBand{0x2a, 0x30, 0x36};

int cell_pixels(const PooledMap& map) {
  return static_cast<int>(std::clamp<int64_t>(kMapSide / std::max<int64_t>({map.rows, map.cols, 1}),
                                              1, kMostMatrixCell));
}

int widest(const std::vector<AxisLabel>& labels, std::string_view heading) {
  int width = text_width(heading, kTextHeight);
  for (const AxisLabel& label : labels) {
    width = std::max(width, text_width(label.text, kTextHeight));
  }
  return width;
}

Rgb band_colour(int64_t frame) {
  if (frame < 0) return kTextBand;
  return frame % 2 == 0 ? kEvenBand : kOddBand;
}

}  // namespace

std::string pooling_text(const PooledMap& map, Pool pool) {
  if (map.block_rows == 1 && map.block_cols == 1) return "single weights";
  return fmt::format("{} of {}×{} blocks", pool_name(pool), map.block_rows, map.block_cols);
}

MatrixPicture::MatrixPicture(const MatrixContent& content)
    : content_(content),
      text_(content.text),
      rows_(content.query_tokens, content.rows, content.map.block_rows, cell_pixels(content.map)),
      cols_(content.key_tokens, content.cols, content.map.block_cols, cell_pixels(content.map)) {
  const PooledMap& map = content.map;
  if (map.rows != rows_.cells() || map.cols != cols_.cells() ||
      map.values(content.pool).size() != static_cast<size_t>(map.rows * map.cols)) {
    throw usage_error(fmt::format("a matrix picture of {}×{} cells needs as many values (got {})",
                                  rows_.cells(), cols_.cells(), map.values(content.pool).size()));
  }
  const bool single = map.block_rows == 1 && map.block_cols == 1;
  const std::string cells = !content.cell_text.empty() ? content.cell_text
                            : single                   ? "single " + content.value_name + "s"
                                                       : pooling_text(map, content.pool);
  text_.lines.push_back(
      joined_parts({cells, "exact", content.domain,
                    std::string(scale_kind_name(content.colours.scale)) + " colours"}));
  name_width_ = widest(rows_.names(), "");
  number_width_ = widest(rows_.numbers(), "query");
  left_ = kMargin + (name_width_ > 0 ? name_width_ + kLabelGap : 0) + number_width_ + kBandGap +
          kBand + kBandGap;
  top_ = header_height(text_) + (cols_.names().empty() ? 1 : 2) * kLineHeight + kBand + kBandGap;
  const int right = left_ + cols_.length() + kBarGap + kBarWidth + kBarTextWidth;
  width_ = std::max(right, kMargin + header_width(text_)) + kMargin;
  height_ = top_ + std::max(rows_.length(), kLeastBar) + kMargin;
}

PixelRect MatrixPicture::cell(int64_t row, int64_t col) const {
  return {left_ + cols_.pixel(col), top_ + rows_.pixel(row), cols_.cell_pixels(),
          rows_.cell_pixels()};
}

Canvas MatrixPicture::draw() const {
  Canvas canvas(width_, height_, kBackground);
  draw_header(canvas, text_);
  const auto scale = ColourScale::fit(content_.colours, content_.map.values(content_.pool));
  draw_cells(canvas, scale);
  draw_bands(canvas);
  draw_labels(canvas);
  const PixelRect bar{left_ + cols_.length() + kBarGap, top_, kBarWidth,
                      std::max(rows_.length(), kLeastBar)};
  draw_colour_bar(canvas, bar, scale, content_.value_name);
  return canvas;
}

void MatrixPicture::draw_cells(Canvas& canvas, const ColourScale& scale) const {
  canvas.fill({left_, top_, cols_.length(), rows_.length()}, kFrameLine);
  const std::vector<float>& values = content_.map.values(content_.pool);
  size_t at = 0;
  for (int64_t r = 0; r < content_.map.rows; ++r) {
    for (int64_t c = 0; c < content_.map.cols; ++c) {
      const bool missing = !content_.missing.empty() && content_.missing[at] != 0;
      if (missing) {
        draw_stripes(canvas, cell(r, c));
      } else {
        canvas.fill(cell(r, c), scale.colour(values[at]));
      }
      ++at;
    }
  }
}

void MatrixPicture::draw_bands(Canvas& canvas) const {
  for (size_t i = 0; i < rows_.segments().size(); ++i) {
    const int begin = rows_.pixel(rows_.segments()[i].cell);
    canvas.fill(
        {left_ - kBandGap - kBand, top_ + begin, kBand, rows_.pixel(rows_.segment_end(i)) - begin},
        band_colour(rows_.segments()[i].frame));
  }
  for (size_t i = 0; i < cols_.segments().size(); ++i) {
    const int begin = cols_.pixel(cols_.segments()[i].cell);
    canvas.fill(
        {left_ + begin, top_ - kBandGap - kBand, cols_.pixel(cols_.segment_end(i)) - begin, kBand},
        band_colour(cols_.segments()[i].frame));
  }
}

void MatrixPicture::draw_labels(Canvas& canvas) const {
  const auto put_right = [&](int right, int y, const std::string& text, Rgb colour) {
    canvas.text(right - text_width(text, kTextHeight), y, text, kTextHeight, colour);
  };
  const int numbers_y = top_ - kBandGap - kBand - kLineHeight;
  const int names_y = numbers_y - kLineHeight;
  for (const AxisLabel& l : fitting_labels(cols_.names(), kLabelGap, -1)) {
    canvas.text(left_ + l.pixel, names_y, l.text, kTextHeight, kText);
  }
  for (const AxisLabel& l : fitting_labels(cols_.numbers(), kLabelGap, -1)) {
    canvas.text(left_ + l.pixel, numbers_y, l.text, kTextHeight, kQuietText);
  }
  const int numbers_right = left_ - kBandGap - kBand - kBandGap;
  for (const AxisLabel& l : fitting_labels(rows_.numbers(), 6, kTextHeight)) {
    put_right(numbers_right, top_ + l.pixel, l.text, kQuietText);
  }
  for (const AxisLabel& l : fitting_labels(rows_.names(), 6, kTextHeight)) {
    canvas.text(kMargin, top_ + l.pixel, l.text, kTextHeight, kText);
  }
  put_right(left_ - 2 * kLabelGap, cols_.names().empty() ? numbers_y : names_y, "key", kKey);
  canvas.text(kMargin, numbers_y, "query", kTextHeight, kQuery);
}

}  // namespace attnscope
