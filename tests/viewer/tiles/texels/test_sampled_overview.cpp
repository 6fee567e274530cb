#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/catch.h"
#include "viewer/tiles/texels/pyramid_tiles.h"
#include "viewer/tiles/texels/sampled_overview.h"

using namespace attnscope;

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("a map's levels: the whole in one tile, and the finest that is kept") {
  const MapGeometry small = MapGeometry::of(256, 100);
  CHECK(small.top_level == 0);
  CHECK(small.base_level == 0);
  const MapGeometry video = MapGeometry::of(17776, 17776);
  CHECK(video.top_level == 7);
  CHECK(video.base_level == 4);
  CHECK(video.texel_rows(4) == 1111);
  CHECK(video.tile_rows(4) == 5);
  CHECK(MapGeometry::of(119056, 119056).base_level == 6);
  const MapGeometry cross = MapGeometry::of(119056, 226);
  CHECK(cross.top_level == 9);
  CHECK(cross.texel_rows(9) <= kTileSide);
  CHECK(MapGeometry::of(2048, 2048).base_level == 0);
  CHECK(MapGeometry::of(2049, 2048).base_level == 1);
}

TEST_CASE("sampled rows: one a stratum, nested, ascending, the same every time") {
  CHECK(SamplePlan(768).stages() == 0);
  for (const int64_t rows : {769, 17776, 119056, 118801}) {
    const SamplePlan plan(rows);
    REQUIRE(plan.stages() > 0);
    std::set<int64_t> all;
    for (int stage = 0; stage < plan.stages(); ++stage) {
      const std::vector<int64_t> added = plan.new_rows(stage);
      CHECK(added == SamplePlan(rows).new_rows(stage));
      CHECK(std::is_sorted(added.begin(), added.end()));
      for (const int64_t row : added) CHECK(all.insert(row).second);
      std::set<int64_t> strata;
      for (const int64_t row : all) strata.insert(row >> plan.exponent(stage));
      const int64_t height = int64_t{1} << plan.exponent(stage);
      CHECK(static_cast<int64_t>(strata.size()) == (rows + height - 1) / height);
      CHECK(strata.size() == all.size());
      CHECK(*all.begin() >= 0);
      CHECK(*all.rbegin() < rows);
    }
    CHECK(plan.new_rows(0).size() > 384 * size_t(rows > 769));
  }
}

TEST_CASE("texels: largest, sum and mean over any width, masked logits left out") {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (const int64_t width : {1, 2, 8, 16, 32, 300}) {
    std::vector<float> row(1003);
    for (float& value : row) value = random() % 5 == 0 ? kMasked : uniform(random);
    const int64_t texels = (1003 + width - 1) / width;
    TexelRow logits(texels, Quantity::logits), weights(texels, Quantity::weights);
    logits.add(row.data(), 1003, width);
    std::vector<float> positive = row;
    for (float& value : positive) value = value == kMasked ? 0 : std::abs(value);
    weights.add(positive.data(), 1003, width);
    for (int64_t t = 0; t < texels; ++t) {
      const int64_t end = std::min<int64_t>(1003, (t + 1) * width);
      double sum = 0, positive_sum = 0;
      int64_t count = 0;
      float most = kMasked, most_positive = 0;
      for (int64_t i = t * width; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        positive_sum += positive[at];
        most_positive = std::max(most_positive, positive[at]);
        if (row[at] == kMasked) continue;
        sum += row[at];
        ++count;
        most = std::max(most, row[at]);
      }
      const auto at = static_cast<size_t>(t);
      CHECK(logits.max[at] == most);
      CHECK(logits.count[at] == count);
      CHECK(weights.max[at] == most_positive);
      CHECK(weights.sum[at] == Approx(positive_sum).epsilon(1e-5));
      if (count == 0) {
        CHECK(logits.mean(t, 7) == kMasked);
      } else {
        CHECK(logits.mean(t, 7) == Approx(sum / double(count)).margin(1e-5));
      }
    }
  }
}

TEST_CASE("a pyramid's tiles do not depend on the order of its rows") {
  // More rows than columns, both ragged.
  const MapGeometry geometry = MapGeometry::of(10003, 3400);
  REQUIRE(geometry.base_level == 2);
  const int64_t rows = geometry.texel_rows(2), cols = geometry.texel_cols(2);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<TexelRow> texels;
  for (int64_t r = 0; r < rows; ++r) {
    TexelRow row(cols, Quantity::weights);
    for (int64_t c = 0; c < cols; ++c) {
      row.max[static_cast<size_t>(c)] = uniform(random);
      row.sum[static_cast<size_t>(c)] = static_cast<double>(uniform(random));
    }
    texels.push_back(row);
  }
  std::vector<size_t> order(texels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::map<TileId, TilePtr> reference;
  for (int round = 0; round < 3; ++round) {
    PyramidTiles pyramid({}, Quantity::weights, geometry);
    std::map<TileId, TilePtr> tiles;
    for (const size_t row : order) {
      for (const TilePtr& tile : pyramid.add(static_cast<int64_t>(row), texels[row])) {
        CHECK(tiles.emplace(tile->id, tile).second);
      }
    }
    CHECK(static_cast<int64_t>(tiles.size()) == PyramidTiles::tiles(geometry));
    if (round == 0) reference = tiles;
    for (const auto& [id, tile] : tiles) {
      CHECK(tile->max == reference.at(id)->max);
      CHECK(tile->mean == reference.at(id)->mean);
    }
    std::shuffle(order.begin(), order.end(), random);
  }
  // The top: texel (1, 2) covers 64 × 64 entries, 16 × 16 texels of the base.
  const MapTile& top = *reference.at({{}, Quantity::weights, geometry.top_level, 0, 0});
  const int64_t below = int64_t{1} << (geometry.top_level - 2);
  double sum = 0;
  float most = 0;
  for (int64_t r = below; r < 2 * below; ++r) {
    for (int64_t c = 2 * below; c < 3 * below; ++c) {
      sum += texels[static_cast<size_t>(r)].sum[static_cast<size_t>(c)];
      most = std::max(most, texels[static_cast<size_t>(r)].max[static_cast<size_t>(c)]);
    }
  }
  const auto at = static_cast<size_t>(top.cols + 2);
  CHECK(top.max[at] == most);
  CHECK(top.mean[at] == Approx(sum / double(below * below * 16)).epsilon(1e-6));
}

TEST_CASE("an overview of all strata shows each texel's own rows, or its stratum's") {
  const MapGeometry geometry = MapGeometry::of(10003, 3400);
  SampledOverview overview(geometry, Quantity::weights);
  const SamplePlan plan(geometry.rows);
  REQUIRE(plan.exponent(0) == 4);
  // The weight of row r is r + 1 everywhere.
  for (const int64_t row : plan.new_rows(0)) {
    TexelRow texels(geometry.texel_cols(2), Quantity::weights);
    const std::vector<float> entries(3400, static_cast<float>(row + 1));
    texels.add(entries.data(), 3400, 4);
    overview.add(row, texels);
  }
  const auto base = overview.cut({{}, Quantity::weights, 2, 9, 3}, 4);
  CHECK_FALSE(base->exact);
  CHECK(base->rows_per_texel == 1);
  CHECK(base->cols == 850 - 768);
  const std::vector<int64_t> rows = plan.new_rows(0);
  for (int64_t r = 0; r < base->rows; ++r) {
    const int64_t stratum = (9 * kTileSide + r) * 4 / 16;
    const auto expected = static_cast<float>(rows[static_cast<size_t>(stratum)] + 1);
    CHECK(base->max[static_cast<size_t>(r * base->cols)] == expected);
    CHECK(base->mean[static_cast<size_t>((r + 1) * base->cols - 1)] == expected);
  }
  const auto top = overview.cut({{}, Quantity::weights, geometry.top_level, 0, 0}, 4);
  CHECK(top->rows_per_texel == int64_t{1} << (geometry.top_level - 4));
  const int64_t strata = top->rows_per_texel;
  for (int64_t r = 0; r < top->rows; ++r) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t s = r * strata; s < std::min<int64_t>((r + 1) * strata, std::ssize(rows)); ++s) {
      sum += static_cast<double>(rows[static_cast<size_t>(s)] + 1);
      ++count;
    }
    CHECK(top->mean[static_cast<size_t>(r * top->cols)] == Approx(sum / double(count)));
  }
}
