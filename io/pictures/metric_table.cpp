#include "io/pictures/metric_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/picture_style.h"
#include "io/pictures/text/text_ink.h"

namespace attnscope {
namespace {

constexpr int kTableSide = 1000;
constexpr int kLeastCell = 8;
constexpr int kMostTableCell = 60;
constexpr int kNumberCell = 28;
constexpr int kCellGap = 1;

int cell_side(const TableNames& names) {
  const auto longer = static_cast<int>(
      std::clamp<size_t>(std::max(names.rows.size(), names.columns.size()), 1, kTableSide));
  return std::clamp(kTableSide / longer, kLeastCell, kMostTableCell);
}

/// The largest size of a number, and the power of ten that the cells count in: 0 where the numbers
/// can be read as they are.
struct TableNotation {
  double most = 0;
  int power = 0;
};

TableNotation notation_of(const std::vector<float>& values) {
  TableNotation found;
  for (const float v : values) {
    if (std::isfinite(v)) found.most = std::max(found.most, std::abs(static_cast<double>(v)));
  }
  if (found.most > 0 && (found.most < 0.01 || found.most >= 99999.5)) {
    found.power = static_cast<int>(std::floor(std::log10(found.most)));
  }
  return found;
}

/// The numbers of one table have the same decimals.
std::vector<std::string> cell_texts(const std::vector<float>& values) {
  const TableNotation notation = notation_of(values);
  const double unit = std::pow(10.0, notation.power), most = notation.most / unit;
  const int decimals = most < 0.1 ? 3 : most < 10 ? 2 : most < 100 ? 1 : 0;
  std::vector<std::string> texts;
  for (const float v : values) {
    texts.push_back(std::isfinite(v) ? fmt::format("{:.{}f}", v / unit, decimals) : "");
  }
  return texts;
}

/// Above the colour bar: the name of the numbers, and what the cells count in.
std::string bar_title(const MetricTable& table) {
  const int power = notation_of(table.values).power;
  return table.value_name + (power == 0 ? "" : " (cells: ×" + power_of_ten(power) + ")");
}

/// The largest size at which all texts have room in a cell; 0 for none.
int fitting_size(const std::vector<std::string>& texts, int side) {
  if (side < kNumberCell) return 0;
  for (const int size : {kTextHeight, kSmallHeight}) {
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

void draw_hatching(Canvas& canvas, PixelRect rect) {
  constexpr int kStep = 6;
  canvas.fill(rect, kMaskedCell);
  for (int y = 0; y < rect.height; ++y) {
    for (int x = 0; x < rect.width; ++x) {
      if ((x + y) % kStep == 0) canvas.fill({rect.x + x, rect.y + y, 1, 1}, kEmptyHatch);
    }
  }
}

void draw_stripes(Canvas& canvas, PixelRect rect) {
  constexpr int kStep = 6;
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    for (int x = rect.x; x < rect.x + rect.width; ++x) {
      canvas.fill({x, y, 1, 1}, (x + y) % kStep < 2 ? kEmptyHatch : kMaskedCell);
    }
  }
}

HeatTablePicture::HeatTablePicture(const MetricTable& table)
    : table_(table),
      grid_(table.names, kMargin, header_height(table.text), cell_side(table.names),
            cell_side(table.names), kCellGap) {
  const size_t cells = table.names.rows.size() * table.names.columns.size();
  if (table.values.size() != cells || cells == 0) {
    throw usage_error(fmt::format("a table of {}×{} cells needs as many values (got {})",
                                  table.names.rows.size(), table.names.columns.size(),
                                  table.values.size()));
  }
  const PixelRect all = grid_.cells();
  const int bar =
      kBarGap + kBarWidth + std::max(kBarTextWidth, text_width(bar_title(table), kTextHeight));
  width_ = std::max(all.x + all.width + bar, kMargin + header_width(table.text)) + kMargin;
  height_ = all.y + std::max(all.height, kLeastBar) + kMargin;
}

Canvas HeatTablePicture::draw() const {
  Canvas canvas(width_, height_, kBackground);
  draw_header(canvas, table_.text);
  const ColourScale scale = ColourScale::fit(table_.colours, table_.values);
  grid_.draw_labels(canvas);
  draw_cells(canvas, scale);
  const bool any_value = std::any_of(table_.values.begin(), table_.values.end(),
                                     [](float v) { return std::isfinite(v); });
  if (!any_value) return canvas;
  const PixelRect all = grid_.cells();
  draw_colour_bar(canvas,
                  {all.x + all.width + kBarGap, all.y, kBarWidth, std::max(all.height, kLeastBar)},
                  scale, bar_title(table_));
  return canvas;
}

void HeatTablePicture::draw_cells(Canvas& canvas, const ColourScale& scale) const {
  const std::vector<std::string> texts = cell_texts(table_.values);
  const int size = fitting_size(texts, grid_.cell(0, 0).width);
  const size_t columns = table_.names.columns.size();
  for (size_t i = 0; i < table_.values.size(); ++i) {
    const PixelRect at =
        grid_.cell(static_cast<int64_t>(i / columns), static_cast<int64_t>(i % columns));
    const float value = table_.values[i];
    if (!std::isfinite(value)) {
      draw_hatching(canvas, at);
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
