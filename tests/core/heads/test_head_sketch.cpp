// A head at a glance: its map in a few cells, and its numbers.
#include <algorithm>
#include <cmath>

#include "core/heads/head_sketch.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// Weights of row i: different from all others, and from column to column.
std::vector<float> row_of(int64_t row, int64_t keys) {
  std::vector<float> weights(static_cast<size_t>(keys));
  for (int64_t key = 0; key < keys; ++key) {
    weights[static_cast<size_t>(key)] = static_cast<float>((row * 31 + key * 7) % 101) / 101.0f;
  }
  return weights;
}

struct Cell {
  float max = 0;
  double sum = 0;
  int64_t count = 0;
};

/// The cell over the rows that were added, entry by entry.
Cell direct(const SketchCells& cells, const std::vector<int64_t>& rows, int64_t r, int64_t c) {
  Cell cell;
  for (const int64_t row : rows) {
    if (row / cells.height != r) continue;
    const std::vector<float> weights = row_of(row, cells.keys);
    for (int64_t key = c * cells.width; key < std::min(cells.keys, (c + 1) * cells.width); ++key) {
      const float weight = weights[static_cast<size_t>(key)];
      cell.max = std::max(cell.max, weight);
      cell.sum += double{weight};
      ++cell.count;
    }
  }
  return cell;
}

void check_cells(const HeadSketch& sketch, const std::vector<int64_t>& rows) {
  const SketchCells& cells = sketch.cells;
  REQUIRE(static_cast<int64_t>(sketch.max.size()) == cells.count());
  REQUIRE(sketch.mean.size() == sketch.max.size());
  int64_t wrong = 0;
  for (int64_t r = 0; r < cells.rows(); ++r) {
    for (int64_t c = 0; c < cells.cols(); ++c) {
      const auto at = static_cast<size_t>(r * cells.cols() + c);
      const Cell expected = direct(cells, rows, r, c);
      REQUIRE(expected.count > 0);
      const double mean = expected.sum / static_cast<double>(expected.count);
      if (sketch.max[at] != expected.max || std::abs(double{sketch.mean[at]} - mean) > 1e-6)
        ++wrong;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("a sketch has at most 64 cells along a side, of sides that are powers of two") {
  CHECK(SketchCells::of(64, 64) == SketchCells{64, 64, 1, 1});
  CHECK(SketchCells::of(65, 1) == SketchCells{65, 1, 2, 1});
  const SketchCells large = SketchCells::of(17776, 226);
  CHECK(large.height == 512);
  CHECK(large.width == 4);
  CHECK(large.rows() == 35);
  CHECK(large.cols() == 57);
  CHECK(SketchCells::of(119056, 119056).rows() == 59);
}

TEST_CASE("every row of cells has a row of the sample") {
  for (const int64_t queries :
       {int64_t{1}, int64_t{63}, int64_t{65}, int64_t{1000}, int64_t{17776}}) {
    INFO(queries << " queries");
    const SketchCells cells = SketchCells::of(queries, 10);
    std::vector<int64_t> seen(static_cast<size_t>(cells.rows()));
    for (const int64_t row : sketch_rows(queries)) ++seen[static_cast<size_t>(row / cells.height)];
    CHECK(std::count(seen.begin(), seen.end(), 0) == 0);
  }
}

TEST_CASE("cells are the largest and the mean weight of the rows that were added") {
  const SketchCells cells = SketchCells::of(300, 150);
  REQUIRE(cells.height == 8);
  REQUIRE(cells.width == 4);
  SketchCanvas canvas(cells);
  const std::vector<int64_t> rows = sketch_rows(300);
  for (const int64_t row : rows) canvas.add(row, row_of(row, 150));
  HeadMetrics metrics;
  metrics.entropy.value = 2.5;
  metrics.head_class = HeadClass::temporal;
  const HeadSketch sketch = canvas.finish(metrics);
  CHECK_FALSE(sketch.exact);
  CHECK(sketch.rows == 64);
  CHECK(sketch.number(*find_head_field("entropy")) == 2.5);
  CHECK(std::isnan(sketch.number(*find_head_field("text_mass"))));
  CHECK(sketch.head_class == HeadClass::temporal);
  check_cells(sketch, rows);
}

TEST_CASE("blocks of all rows make an exact sketch, whichever side is larger") {
  for (const auto& [queries, keys] :
       {std::pair<int64_t, int64_t>{300, 150}, {150, 300}, {129, 70}, {20, 10}}) {
    INFO(queries << " x " << keys);
    const SketchCells cells = SketchCells::of(queries, keys);
    const int64_t side = std::min(cells.height, cells.width);
    SketchCanvas canvas(cells);
    std::vector<int64_t> rows;
    for (int64_t first = 0; first < queries; first += side) {
      std::vector<float> max(static_cast<size_t>((keys + side - 1) / side));
      std::vector<double> sum(max.size());
      for (int64_t row = first; row < std::min(queries, first + side); ++row) {
        rows.push_back(row);
        const std::vector<float> weights = row_of(row, keys);
        for (int64_t key = 0; key < keys; ++key) {
          const auto block = static_cast<size_t>(key / side);
          max[block] = std::max(max[block], weights[static_cast<size_t>(key)]);
          sum[block] += double{weights[static_cast<size_t>(key)]};
        }
      }
      canvas.add_blocks(first, max, sum);
    }
    const HeadSketch sketch = canvas.finish({});
    CHECK(sketch.exact);
    CHECK(sketch.rows == queries);
    check_cells(sketch, rows);
  }
}
