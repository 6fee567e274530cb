#include "cli/diff/diff_pictures.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/common/head_table.h"
#include "core/base/error.h"
#include "io/pictures/joined_parts.h"

namespace attnscope {
namespace {

std::string file_text(const DiffSide& side) { return one_line(side.path().filename().string()); }

/// The words for the number of a cell: "mean of 64×64 differences".
std::string block_text(int64_t block, Pool pool) {
  if (block == 1) return "single differences";
  return fmt::format("{} of {}×{} differences", pool == Pool::max ? "largest in size" : "mean",
                     block, block);
}

std::vector<float> all_values(const std::vector<PooledMap>& maps, Pool pool) {
  std::vector<float> all;
  for (const PooledMap& map : maps) {
    all.insert(all.end(), map.values(pool).begin(), map.values(pool).end());
  }
  return all;
}

/// The picture of any content: MatrixPicture of MatrixContent …
template <class Use>
auto use_picture(const std::variant<MosaicContent, MatrixContent, MetricTable>& content,
                 const Use& use) {
  if (const auto* const mosaic = std::get_if<MosaicContent>(&content)) {
    return use(MosaicPicture(*mosaic), mosaic->text);
  }
  if (const auto* const matrix = std::get_if<MatrixContent>(&content)) {
    return use(MatrixPicture(*matrix), matrix->text);
  }
  const auto& table = std::get<MetricTable>(content);
  return use(HeatTablePicture(table), table.text);
}

/// Maps in the places of A's heads.
MosaicContent mosaic_of(DifferenceMaps of, const PictureStyle& look, std::vector<size_t>& places) {
  std::vector<HeadName> names;
  for (const ComparedPair& pair : of.pairs) names.push_back(pair.a.name);
  HeadTable table = table_of_heads(names);
  places = table.places;
  MosaicContent content;
  content.names = std::move(table.names);
  content.maps.resize(content.names.rows.size() * content.names.columns.size());
  for (size_t i = 0; i < places.size(); ++i) content.maps[places[i]] = std::move(of.maps[i]);
  content.pool = of.pool;
  content.cell_text = of.cells;
  content.text = difference_text(of.sides, of.pairs);
  content.value_name = "A − B";
  content.alike = true;
  content.look = look;
  return content;
}

MatrixContent matrix_of(DifferenceMaps of, const PictureStyle& look) {
  const ComparedPair& pair = of.pairs.front();
  MatrixContent content;
  content.map = std::move(of.maps.front());
  content.query_tokens = *pair.a.query_tokens;
  content.key_tokens = *pair.a.key_tokens;
  content.rows = {pair.query_at(0), pair.query_at(pair.rows - 1) + 1};
  content.cols = pair.keys;
  content.pool = of.pool;
  content.cell_text = of.cells;
  content.value_name = "A − B";
  content.text = difference_text(of.sides, of.pairs);
  content.look = look;
  return content;
}

MetricTable table_of(DifferenceMaps of, const PictureStyle& look) {
  MetricTable table;
  table.text = difference_text(of.sides, of.pairs);
  table.text.lines.push_back(joined_parts({of.cells, "exact"}));
  table.names = {"query", "key frame", std::move(of.query_parts), std::move(of.key_parts)};
  table.value_name = "A − B";
  table.look = look;
  return table;
}

}  // namespace

ColourChoice difference_colours(std::span<const float> differences, ScaleKind scale) {
  std::vector<float> sizes;
  for (const float difference : differences) {
    if (std::isfinite(difference)) sizes.push_back(std::abs(difference));
  }
  const ColourScale fitted = ColourScale::fit({Colormap::coolwarm, ScaleKind::sqrt, {}}, sizes);
  // Equal ends: nothing differs.
  const double end = fitted.is_of_nothing() ? 0 : fitted.range().high;
  return {Colormap::coolwarm, scale, {false, -end, end, false}};
}

PictureText difference_text(const DiffSides& sides, const std::vector<ComparedPair>& pairs) {
  const ComparedPair& first = pairs.front();
  const auto side_text = [&](std::string_view side, const DiffSide& of, const HeadName& name) {
    return joined_parts(
        {fmt::format("{}: {}", side, file_text(of)), pairs.size() == 1 ? head_label(name) : ""});
  };
  PictureText text{"A − B", {side_text("A", sides.a, first.a.name)}};
  text.lines.push_back(side_text("B", sides.b, first.b.name));
  if (pairs.size() > 1) {
    text.lines.push_back(joined_parts(
        {fmt::format("{} pairs of heads, by A's names", pairs.size()),
         fmt::format("the first is {} − {}", head_label(first.a.name), head_label(first.b.name))}));
  }
  return text;
}

DifferencePicture::DifferencePicture(DifferenceMaps of, PictureTarget target)
    : target_(std::move(target)), pool_(of.pool), scale_(of.scale) {
  if (of.cells.empty()) of.cells = block_text(of.maps.front().block_rows, of.pool);
  // Colours of no values: the header names their scale.
  const ColourChoice colours = difference_colours({}, scale_);
  if (of.pairs.size() > 1) {
    content_ = mosaic_of(std::move(of), target_.look, places_);
  } else if (of.query_parts.empty()) {
    content_ = matrix_of(std::move(of), target_.look);
  } else {
    content_ = table_of(std::move(of), target_.look);
  }
  std::visit([&](auto& content) { content.colours = colours; }, content_);
}

PageSize DifferencePicture::page() const {
  return use_picture(content_, [](const auto& picture, const PictureText&) {
    return PageSize{picture.width(), picture.height()};
  });
}

void DifferencePicture::write(std::vector<PooledMap> maps) {
  const ColourChoice colours = difference_colours(all_values(maps, pool_), scale_);
  std::visit([&](auto& content) { content.colours = colours; }, content_);
  if (auto* const mosaic = std::get_if<MosaicContent>(&content_)) {
    for (size_t i = 0; i < maps.size(); ++i) mosaic->maps[places_[i]] = std::move(maps[i]);
  } else if (auto* const matrix = std::get_if<MatrixContent>(&content_)) {
    matrix->map = std::move(maps.front());
    for (const float value : matrix->map.values(pool_)) {
      matrix->missing.push_back(std::isnan(value) ? 1 : 0);
    }
  } else {
    std::get<MetricTable>(content_).values = std::move(maps.front().mean);
  }
  use_picture(content_, [&](const auto& picture, const PictureText& text) {
    write_picture(picture.draw(), target_.look, text.title, target_.path, target_.force);
  });
}

}  // namespace attnscope
