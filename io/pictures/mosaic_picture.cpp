#include "io/pictures/mosaic_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"

namespace attnscope {
namespace {

constexpr int kPageWidth = 1400;
constexpr int kMostThumbnail = 192;
/// A side of a map on a page of a given width.
constexpr int kMostOnPage = 2 * kMostThumbnail;
constexpr int kThumbnailGap = 6;

/// Cells of the largest map.
int most_rows(const MosaicContent& content) {
  int64_t most = 1;
  for (const PooledMap& map : content.maps) most = std::max(most, map.rows);
  return static_cast<int>(most);
}

int most_columns(const MosaicContent& content) {
  int64_t most = 1;
  for (const PooledMap& map : content.maps) most = std::max(most, map.cols);
  return static_cast<int>(most);
}

int cell_pixels(const MosaicContent& content) {
  const auto columns = static_cast<int>(std::max<size_t>(content.names.columns.size(), 1));
  const PictureStyle& look = content.look;
  const int side =
      std::min(look.px(kPageWidth) / columns - look.px(kThumbnailGap), look.px(kMostThumbnail));
  return std::max(1, side / std::max(most_rows(content), most_columns(content)));
}

PictureText explained(const MosaicContent& content) {
  PictureText text = content.text;
  text.lines.push_back(joined_parts(
      {content.cell_text, "exact", content.domain,
       std::string(scale_kind_name(content.colours.scale)) + " colours",
       content.alike || !content.colours.range.quantiles ? "one range for all"
                                                         : "each map in its own range"}));
  return text;
}

}  // namespace

MosaicPicture::MosaicPicture(const MosaicContent& content)
    : content_(content),
      look_(content.look),
      text_(explained(content)),
      pixels_(cell_pixels(content)),
      grid_(grid_of(pixels_)) {
  const size_t places = content.names.rows.size() * content.names.columns.size();
  if (places == 0 || content.maps.size() != places) {
    throw usage_error(fmt::format("a mosaic of {}×{} maps needs as many (got {})",
                                  content.names.rows.size(), content.names.columns.size(),
                                  content.maps.size()));
  }
  const int most =
      std::max(1, look_.px(kMostOnPage) / std::max(most_rows(content), most_columns(content)));
  pixels_ = fitting_cell(
      look_, pixels_, most, [this](int pixels) { return size_of(grid_of(pixels)); },
      "select fewer heads, or take a larger --block");
  grid_ = grid_of(pixels_);
  const PageSize size = size_of(grid_);
  width_ = look_.page_width > 0 ? look_.page_width : size.width;
  height_ = size.height;
}

TableLayout MosaicPicture::grid_of(int pixels) const {
  return {content_.names,
          look_,
          look_.margin,
          header_height(text_, look_),
          most_columns(content_) * pixels,
          most_rows(content_) * pixels,
          look_.px(kThumbnailGap)};
}

PageSize MosaicPicture::size_of(const TableLayout& grid) const {
  const PixelRect all = grid.cells();
  int right = all.x + all.width + bar_room(look_, content_.value_name);
  if (look_.page_width == 0) right = std::max(right, look_.margin + header_width(text_, look_));
  const int least = look_.legend ? look_.least_bar : 0;
  return {right + look_.margin, all.y + std::max(all.height, least) + look_.margin};
}

PixelRect MosaicPicture::cell(int64_t row, int64_t column, int64_t map_row,
                              int64_t map_column) const {
  const PixelRect at = grid_.cell(row, column);
  return {at.x + static_cast<int>(map_column) * pixels_, at.y + static_cast<int>(map_row) * pixels_,
          pixels_, pixels_};
}

void MosaicPicture::draw_map(Canvas& canvas, size_t i, const ColourScale& scale) const {
  const size_t columns = content_.names.columns.size();
  const auto row = static_cast<int64_t>(i / columns);
  const auto column = static_cast<int64_t>(i % columns);
  const PooledMap& map = content_.maps[i];
  if (map.rows == 0) return draw_hatching(canvas, grid_.cell(row, column), look_);
  size_t at = 0;
  for (int64_t r = 0; r < map.rows; ++r) {
    for (int64_t c = 0; c < map.cols; ++c) {
      const float value = map.values(content_.pool)[at++];
      if (std::isnan(value)) {
        draw_stripes(canvas, cell(row, column, r, c), look_);
      } else {
        canvas.fill(cell(row, column, r, c), scale.colour(value));
      }
    }
  }
}

Canvas MosaicPicture::draw() const {
  for (const PooledMap& map : content_.maps) {
    if (map.values(content_.pool).size() == static_cast<size_t>(map.rows * map.cols)) continue;
    throw usage_error("a map of a mosaic needs as many values as it has cells");
  }
  Canvas canvas(width_, height_, look_);
  draw_header(canvas, text_, look_);
  grid_.draw_labels(canvas);
  std::vector<float> all_values;
  if (content_.alike) {
    for (const PooledMap& map : content_.maps) {
      const auto& values = map.values(content_.pool);
      all_values.insert(all_values.end(), values.begin(), values.end());
    }
  }
  const ColourScale common =
      ColourScale::fit(content_.colours, all_values).with_masked(look_.masked_cell);
  const bool one_range = content_.alike || !content_.colours.range.quantiles;
  for (size_t i = 0; i < content_.maps.size(); ++i) {
    const auto& values = content_.maps[i].values(content_.pool);
    draw_map(canvas, i,
             one_range ? common
                       : ColourScale::fit(content_.colours, values).with_masked(look_.masked_cell));
  }
  if (!look_.legend) return canvas;
  const PixelRect all = grid_.cells();
  const PixelRect bar{all.x + all.width + look_.px(kBarGap), all.y, look_.px(kBarWidth),
                      std::max(all.height, look_.least_bar)};
  if (one_range) {
    draw_colour_bar(canvas, bar, common, content_.value_name, look_);
  } else {
    draw_plain_colour_bar(canvas, bar, content_.colours.map, content_.value_name, look_);
  }
  return canvas;
}

}  // namespace attnscope
