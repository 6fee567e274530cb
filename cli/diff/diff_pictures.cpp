#include "cli/diff/diff_pictures.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/common/head_table.h"
#include "core/base/error.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/mosaic_picture.h"

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

void write_to(const PictureTarget& target, const PictureText& text, const Canvas& canvas) {
  write_picture(canvas, target.look, text.title, target.path, target.force);
}

/// Maps in the places of A's heads.
void write_difference_mosaic(MosaicContent content, const DiffSides& sides,
                             const std::vector<ComparedPair>& pairs, std::vector<PooledMap> maps,
                             const PictureTarget& target) {
  std::vector<HeadName> names;
  for (const ComparedPair& pair : pairs) names.push_back(pair.a.name);
  HeadTable table = table_of_heads(names);
  content.names = std::move(table.names);
  content.maps.resize(content.names.rows.size() * content.names.columns.size());
  for (size_t i = 0; i < maps.size(); ++i) content.maps[table.places[i]] = std::move(maps[i]);
  content.text = difference_text(sides, pairs);
  content.value_name = "A − B";
  content.look = target.look;
  write_to(target, content.text, MosaicPicture(content).draw());
}

}  // namespace

ColourChoice difference_colours(std::span<const float> differences, ScaleKind scale) {
  std::vector<float> sizes;
  for (const float difference : differences) {
    if (std::isfinite(difference)) sizes.push_back(std::abs(difference));
  }
  const ColourScale fitted = ColourScale::fit({Colormap::coolwarm, ScaleKind::sqrt, {}}, sizes);
  // Where nothing differs, all is in the middle of whatever range.
  const double end = fitted.is_of_nothing() ? 1 : fitted.range().high;
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

void write_pooled_picture(const PooledPicture& p, std::vector<PooledMap> maps,
                          const PictureTarget& target) {
  const ColourChoice colours = difference_colours(all_values(maps, p.pool), p.scale);
  const int64_t block = maps.front().block_rows;
  if (maps.size() > 1) {
    MosaicContent content;
    content.pool = p.pool;
    content.cell_text = block_text(block, p.pool);
    content.colours = colours;
    return write_difference_mosaic(std::move(content), p.sides, p.pairs, std::move(maps), target);
  }
  const ComparedPair& pair = p.pairs.front();
  MatrixContent content;
  content.map = std::move(maps.front());
  content.query_tokens = *pair.a.query_tokens;
  content.key_tokens = *pair.a.key_tokens;
  content.rows = {pair.query_at(0), pair.query_at(pair.rows - 1) + 1};
  content.cols = pair.keys;
  content.pool = p.pool;
  content.colours = colours;
  content.cell_text = block_text(block, p.pool);
  content.value_name = "A − B";
  content.text = difference_text(p.sides, p.pairs);
  for (const float value : content.map.values(p.pool)) {
    content.missing.push_back(std::isnan(value) ? 1 : 0);
  }
  content.look = target.look;
  write_to(target, content.text, MatrixPicture(content).draw());
}

void write_part_picture(const DiffSides& sides, const std::vector<ComparedPair>& pairs,
                        const std::vector<PartDifference>& found, ScaleKind scale,
                        const PictureTarget& target) {
  std::vector<PooledMap> maps;
  for (const PartDifference& each : found) {
    PooledMap map;
    map.rows = std::ssize(each.query_parts);
    map.cols = std::ssize(each.key_parts);
    map.mean.assign(each.difference.begin(), each.difference.end());
    map.max = map.mean;
    maps.push_back(std::move(map));
  }
  const ColourChoice colours = difference_colours(all_values(maps, Pool::mean), scale);
  const std::string cells = "mass of key frames in A − in B, mean over the queries of a frame";
  if (maps.size() > 1) {
    MosaicContent content;
    content.cell_text = cells;
    content.colours = colours;
    return write_difference_mosaic(std::move(content), sides, pairs, std::move(maps), target);
  }
  MetricTable table;
  table.text = difference_text(sides, pairs);
  table.text.lines.push_back(joined_parts({cells, "exact"}));
  table.names.row_name = "query";
  table.names.column_name = "key frame";
  for (const SequencePart& part : found.front().query_parts) table.names.rows.push_back(part.name);
  for (const SequencePart& part : found.front().key_parts) table.names.columns.push_back(part.name);
  table.value_name = "A − B";
  table.values = std::move(maps.front().mean);
  table.colours = colours;
  table.look = target.look;
  write_to(target, table.text, HeatTablePicture(table).draw());
}

}  // namespace attnscope
