#include "io/pictures/mosaic_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/picture_style.h"

namespace attnscope {
namespace {

constexpr int kPageWidth = 1400;
constexpr int kMostThumbnail = 192;
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
  const int side = std::min(kPageWidth / columns - kThumbnailGap, kMostThumbnail);
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
      text_(explained(content)),
      pixels_(cell_pixels(content)),
      grid_(content.names, kMargin, header_height(text_), most_columns(content) * pixels_,
            most_rows(content) * pixels_, kThumbnailGap) {
  const size_t places = content.names.rows.size() * content.names.columns.size();
  bool fits = places > 0 && content.maps.size() == places;
  for (const PooledMap& map : content.maps) {
    fits = fits && map.values(content.pool).size() == static_cast<size_t>(map.rows * map.cols);
  }
  if (!fits) {
    throw usage_error(fmt::format("a mosaic of {}×{} maps needs as many, with all their cells",
                                  content.names.rows.size(), content.names.columns.size()));
  }
  const PixelRect all = grid_.cells();
  width_ = std::max(all.x + all.width + kBarGap + kBarWidth + kBarTextWidth,
                    kMargin + header_width(text_)) +
           kMargin;
  height_ = all.y + std::max(all.height, kLeastBar) + kMargin;
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
  if (map.rows == 0) return draw_hatching(canvas, grid_.cell(row, column));
  size_t at = 0;
  for (int64_t r = 0; r < map.rows; ++r) {
    for (int64_t c = 0; c < map.cols; ++c) {
      const float value = map.values(content_.pool)[at++];
      if (std::isnan(value)) {
        draw_stripes(canvas, cell(row, column, r, c));
      } else {
        canvas.fill(cell(row, column, r, c), scale.colour(value));
      }
    }
  }
}

Canvas MosaicPicture::draw() const {
  Canvas canvas(width_, height_, kBackground);
  draw_header(canvas, text_);
  grid_.draw_labels(canvas);
  std::vector<float> all_values;
  if (content_.alike) {
    for (const PooledMap& map : content_.maps) {
      const auto& values = map.values(content_.pool);
      all_values.insert(all_values.end(), values.begin(), values.end());
    }
  }
  const ColourScale common = ColourScale::fit(content_.colours, all_values);
  const bool one_range = content_.alike || !content_.colours.range.quantiles;
  for (size_t i = 0; i < content_.maps.size(); ++i) {
    const auto& values = content_.maps[i].values(content_.pool);
    draw_map(canvas, i, one_range ? common : ColourScale::fit(content_.colours, values));
  }
  const PixelRect all = grid_.cells();
  const PixelRect bar{all.x + all.width + kBarGap, all.y, kBarWidth,
                      std::max(all.height, kLeastBar)};
  if (one_range) {
    draw_colour_bar(canvas, bar, common, content_.value_name);
  } else {
    draw_plain_colour_bar(canvas, bar, content_.colours.map, content_.value_name);
  }
  return canvas;
}

}  // namespace attnscope
