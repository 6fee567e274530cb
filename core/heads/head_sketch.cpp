#include "core/heads/head_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// Rows of a head that its sketch is made of: at least one a row of cells.
constexpr int64_t kSketchRows = SketchCells::kMostCells;

int64_t cell_side(int64_t tokens) {
  int64_t side = 1;
  while ((tokens + side - 1) / side > SketchCells::kMostCells) side *= 2;
  return side;
}

}  // namespace

SketchCells SketchCells::of(int64_t queries, int64_t keys) {
  return {queries, keys, cell_side(queries), cell_side(keys)};
}

int64_t HeadSketch::bytes(const SketchCells& cells) {
  return static_cast<int64_t>(sizeof(HeadSketch)) +
         cells.count() * 2 * static_cast<int64_t>(sizeof(float)) +
         static_cast<int64_t>(head_fields().size() * sizeof(double));
}

double HeadSketch::number(const HeadField& field) const {
  return numbers[static_cast<size_t>(&field - head_fields().data())];
}

bool same_sketch(const HeadSketch& a, const HeadSketch& b) {
  const auto same_number = [](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  };
  return a.cells == b.cells && a.max == b.max && a.mean == b.mean && a.rows == b.rows &&
         a.exact == b.exact && a.head_class == b.head_class &&
         std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), b.numbers.end(),
                    same_number);
}

std::vector<int64_t> sketch_rows(int64_t queries) { return sampled_rows(queries, kSketchRows); }

SketchCanvas::SketchCanvas(const SketchCells& cells)
    : cells_(cells),
      max_(static_cast<size_t>(cells.count())),
      sum_(static_cast<size_t>(cells.count())),
      rows_(static_cast<size_t>(cells.rows())) {}

void SketchCanvas::take(int64_t cell, float max, double sum) {
  const auto at = static_cast<size_t>(cell);
  max_[at] = std::max(max_[at], max);
  sum_[at] += sum;
}

void SketchCanvas::add(int64_t row, std::span<const float> weights) {
  const int64_t line = row / cells_.height;
  for (int64_t c = 0; c < cells_.cols(); ++c) {
    const int64_t first = c * cells_.width;
    const auto part =
        weights.subspan(static_cast<size_t>(first),
                        static_cast<size_t>(std::min(cells_.width, cells_.keys - first)));
    float max = 0;
    double sum = 0;
    for (const float weight : part) {
      max = std::max(max, weight);
      sum += static_cast<double>(weight);
    }
    take(line * cells_.cols() + c, max, sum);
  }
  ++rows_[static_cast<size_t>(line)];
}

void SketchCanvas::add_blocks(int64_t row, std::span<const float> max,
                              std::span<const double> sum) {
  const int64_t side = std::min(cells_.height, cells_.width);
  const int64_t line = row / cells_.height;
  for (size_t i = 0; i < max.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) * side / cells_.width;
    take(line * cells_.cols() + column, max[i], sum[i]);
  }
  rows_[static_cast<size_t>(line)] += std::min(side, cells_.queries - row);
}

HeadSketch SketchCanvas::finish(const HeadMetrics& metrics) const {
  HeadSketch sketch;
  sketch.cells = cells_;
  sketch.max = max_;
  sketch.mean.resize(sum_.size());
  for (int64_t r = 0; r < cells_.rows(); ++r) {
    const int64_t rows = rows_[static_cast<size_t>(r)];
    sketch.rows += rows;
    for (int64_t c = 0; c < cells_.cols() && rows > 0; ++c) {
      const auto at = static_cast<size_t>(r * cells_.cols() + c);
      const int64_t width = std::min(cells_.width, cells_.keys - c * cells_.width);
      sketch.mean[at] = static_cast<float>(sum_[at] / static_cast<double>(rows * width));
    }
  }
  sketch.exact = sketch.rows == cells_.queries;
  for (const HeadField& field : head_fields()) {
    sketch.numbers.push_back(
        number_of(metrics, field).value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  sketch.head_class = metrics.head_class;
  return sketch;
}

}  // namespace attnscope
