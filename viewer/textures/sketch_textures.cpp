#include "viewer/textures/sketch_textures.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "viewer/gl/map_shaders.h"

namespace attnscope {
namespace {

constexpr int kLeastSide = 8;
constexpr int kLeastSlots = 8;
/// The share of a thumbnail's cells at either end that have the colour of that end.
constexpr double kLowest = 0.01;

/// Cells of a sketch in another size, each the largest or the mean of some.
struct Thumbnail {
  int rows = 0, cols = 0;
  std::vector<float> numbers;
};

float pooled(const std::vector<float>& from, int64_t cols, IndexRange down, IndexRange right,
             Pool pool) {
  float max = 0;
  double sum = 0;
  for (int64_t y = down.begin; y < down.end; ++y) {
    for (int64_t x = right.begin; x < right.end; ++x) {
      const float value = from[static_cast<size_t>(y * cols + x)];
      max = std::max(max, value);
      sum += static_cast<double>(value);
    }
  }
  if (pool == Pool::max) return max;
  return static_cast<float>(sum / static_cast<double>(down.size() * right.size()));
}

Thumbnail thumbnail(const HeadSketch& sketch, int side, Pool pool, ScaleKind kind) {
  const int64_t rows = sketch.cells.rows(), cols = sketch.cells.cols();
  const int64_t high = (rows + side - 1) / side, wide = (cols + side - 1) / side;
  Thumbnail out{
      static_cast<int>((rows + high - 1) / high), static_cast<int>((cols + wide - 1) / wide), {}};
  const std::vector<float>& from = pool == Pool::max ? sketch.max : sketch.mean;
  for (int64_t r = 0; r < rows; r += high) {
    for (int64_t c = 0; c < cols; c += wide) {
      out.numbers.push_back(
          pooled(from, cols, {r, std::min(rows, r + high)}, {c, std::min(cols, c + wide)}, pool));
    }
  }
  ColourChoice choice;
  choice.scale = kind;
  choice.range = {true, kLowest, 1 - kLowest, false};
  const ColourScale scale = ColourScale::fit(choice, out.numbers);
  for (float& number : out.numbers) {
    number = number > 0
                 ? static_cast<float>(std::clamp(scale.unit(static_cast<double>(number)), 0.0, 1.0))
                 : gl::kZeroTexel;
  }
  return out;
}

}  // namespace

void SketchTextures::begin(int64_t heads, float pixels, Pool pool, ScaleKind scale) {
  const int least = std::max(kLeastSide, static_cast<int>(pixels));
  const int side = std::min(static_cast<int>(SketchCells::kMostCells),
                            static_cast<int>(std::bit_floor(static_cast<unsigned>(least))));
  int slots = std::max(slots_, kLeastSlots);
  // Room for those of two frames: what is scrolled away stays for a while.
  while (int64_t{slots} * slots < 2 * heads) slots *= 2;
  const bool full = static_cast<int64_t>(entries_.size()) + heads > int64_t{slots} * slots;
  if (side == side_ && slots == slots_ && pool == pool_ && scale == scale_ && !full) {
    return;
  }
  entries_.clear();
  pool_ = pool;
  scale_ = scale;
  if (side == side_ && slots == slots_) return;
  side_ = side;
  slots_ = slots;
  grid_.resize(slots * side, slots * side);
}

SketchTextures::Place SketchTextures::place(const HeadId& head,
                                            const std::shared_ptr<const HeadSketch>& sketch) {
  const auto [found, is_new] = entries_.try_emplace(head);
  Entry& entry = found->second;
  if (is_new) entry.slot = static_cast<int>(entries_.size()) - 1;
  if (entry.sketch == sketch) return entry.place;
  const Thumbnail image = thumbnail(*sketch, side_, pool_, scale_);
  entry.sketch = sketch;
  entry.place = {entry.slot / slots_ * side_, entry.slot % slots_ * side_, image.rows, image.cols};
  grid_.update(entry.place.row, entry.place.col, image.rows, image.cols, image.numbers);
  return entry.place;
}

int64_t SketchTextures::bytes() const {
  return int64_t{grid_.rows()} * grid_.cols() * static_cast<int64_t>(sizeof(float));
}

}  // namespace attnscope
