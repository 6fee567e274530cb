#include "io/pictures/metric_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kTableSide = 1000;
constexpr int kLeastCell = 8;
constexpr int kMostTableCell = 60;
constexpr int kNumberCell = 28;
constexpr int kCellGap = 1;

int cell_side(const TableNames& names, const PictureStyle& look) {
  const auto longer = static_cast<int>(
      std::clamp<size_t>(std::max(names.rows.size(), names.columns.size()), 1, kTableSide));
  return std::clamp(look.px(kTableSide) / longer, look.px(kLeastCell), look.px(kMostTableCell));
}

/// Of a number that is a power of ten, in a cell.
constexpr int kPowerDigits = 2;

double largest_size(const std::vector<float>& values) {
  double most = 0;
  for (const float v : values) {
    if (std::isfinite(v)) most = std::max(most, std::abs(static_cast<double>(v)));
  }
  return most;
}

/// The power of ten that the cells count in: 0 where the numbers can be read as they are.
int unit_of(const std::vector<float>& values) {
  const double most = largest_size(values);
  const bool plain = most == 0 || (most >= 0.01 && most < 99999.5);
  return plain ? 0 : static_cast<int>(std::floor(std::log10(most)));
}

/// Decimals of one table are as many in all cells.
std::vector<std::string> cell_texts(const std::vector<float>& values, TickNotation notation) {
  const double unit = std::pow(10.0, notation.unit), most = largest_size(values) / unit;
  const int decimals = most < 0.1 ? 3 : most < 10 ? 2 : most < 100 ? 1 : 0;
  std::vector<std::string> texts;
  for (const float v : values) {
    texts.push_back(!std::isfinite(v) ? ""
                    : notation.powers ? power_words(v, kPowerDigits)
                                      : fmt::format("{:.{}f}", v / unit, decimals));
  }
  return texts;
}

/// The largest size at which all texts have room in a cell; 0 for none.
int fitting_size(const std::vector<std::string>& texts, int side, const PictureStyle& look) {
  if (side < look.px(kNumberCell)) return 0;
  for (const int size : {look.text_height, look.small_height}) {
    // Digits have white on both sides, so that little is needed beside them.
    if (std::all_of(texts.begin(), texts.end(),
                    [&](const std::string& text) { return text_width(text, size) <= side - 2; })) {
      return size;
    }
  }
  return 0;
}

/// Black or white, whichever stands out.
Rgb ink_on(Rgb c) {
  const double light = 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
  return light > 128 ? Rgb{0, 0, 0} : Rgb{0xff, 0xff, 0xff};
}

}  // namespace

void draw_hatching(Canvas& canvas, PixelRect rect, const PictureStyle& look) {
  const int step = look.px(6), line = look.px(1);
  canvas.fill(rect, look.masked_cell);
  for (int y = 0; y < rect.height; ++y) {
    for (int x = 0; x < rect.width; ++x) {
      if ((x + y) % step < line) canvas.fill({rect.x + x, rect.y + y, 1, 1}, look.empty_hatch);
    }
  }
}

void draw_stripes(Canvas& canvas, PixelRect rect, const PictureStyle& look) {
  const int step = look.px(6), line = look.px(2);
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    for (int x = rect.x; x < rect.x + rect.width; ++x) {
      canvas.fill({x, y, 1, 1}, (x + y) % step < line ? look.empty_hatch : look.masked_cell);
    }
  }
}

HeatTablePicture::HeatTablePicture(const MetricTable& table)
    : table_(table), look_(table.look), grid_(grid_of(cell_side(table.names, table.look))) {
  if (table.names.rows.empty() || table.names.columns.empty()) {
    throw usage_error("a table without cells is no picture");
  }
  const int side = fitting_cell(
      look_, cell_side(table.names, look_), 2 * look_.px(kMostTableCell),
      [this](int pixels) { return size_of(grid_of(pixels)); }, "select fewer heads");
  grid_ = grid_of(side);
  const PageSize size = size_of(grid_);
  width_ = look_.page_width > 0 ? look_.page_width : size.width;
  height_ = size.height;
}

TableLayout HeatTablePicture::grid_of(int side) const {
  return {table_.names, look_, look_.margin,      header_height(table_.text, look_),
          side,         side,  look_.px(kCellGap)};
}

PageSize HeatTablePicture::size_of(const TableLayout& grid) const {
  const PixelRect all = grid.cells();
  int bar = bar_room(look_, table_.value_name);
  if (look_.legend && look_.page_width == 0) {
    bar = look_.px(kBarGap) + look_.px(kBarWidth) +
          std::max(look_.px(kBarTextWidth), text_width(table_.value_name, look_.text_height));
  }
  int right = all.x + all.width + bar;
  if (look_.page_width == 0) {
    right = std::max(right, look_.margin + header_width(table_.text, look_));
  }
  const int least = look_.legend ? look_.least_bar : 0;
  return {right + look_.margin, all.y + std::max(all.height, least) + look_.margin};
}

Canvas HeatTablePicture::draw() const {
  if (table_.values.size() != table_.names.rows.size() * table_.names.columns.size()) {
    throw usage_error(fmt::format("a table of {}×{} cells needs as many values (got {})",
                                  table_.names.rows.size(), table_.names.columns.size(),
                                  table_.values.size()));
  }
  Canvas canvas(width_, height_, look_);
  draw_header(canvas, table_.text, look_);
  const ColourScale scale =
      ColourScale::fit(table_.colours, table_.values).with_masked(look_.masked_cell);
  grid_.draw_labels(canvas);
  const PixelRect all = grid_.cells();
  const PixelRect bar{all.x + all.width + look_.px(kBarGap), all.y, look_.px(kBarWidth),
                      std::max(all.height, look_.least_bar)};
  const TickNotation notation =
      bar_notation(std::span(&scale, 1), bar.height, look_, unit_of(table_.values));
  draw_cells(canvas, scale, notation);
  if (look_.legend) draw_colour_bar(canvas, bar, scale, table_.value_name, look_, notation);
  return canvas;
}

void HeatTablePicture::draw_cells(Canvas& canvas, const ColourScale& scale,
                                  TickNotation notation) const {
  const std::vector<std::string> texts = cell_texts(table_.values, notation);
  const int size = fitting_size(texts, grid_.cell(0, 0).width, look_);
  const size_t columns = table_.names.columns.size();
  for (size_t i = 0; i < table_.values.size(); ++i) {
    const PixelRect at =
        grid_.cell(static_cast<int64_t>(i / columns), static_cast<int64_t>(i % columns));
    const float value = table_.values[i];
    if (!std::isfinite(value)) {
      draw_hatching(canvas, at, look_);
      continue;
    }
    const Rgb colour = scale.colour(value);
    canvas.fill(at, colour);
    if (size == 0) continue;
    canvas.text(at.x + (at.width - text_width(texts[i], size)) / 2, at.y + (at.height - size) / 2,
                texts[i], size, ink_on(colour));
  }
}

}  // namespace attnscope
