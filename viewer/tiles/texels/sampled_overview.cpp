#include "viewer/tiles/texels/sampled_overview.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "viewer/tiles/texels/pyramid_tiles.h"

namespace attnscope {
namespace {

/// Rows of the first stage at most: what a first picture is made of.
constexpr int64_t kMostFirstRows = 768;
constexpr int kStages = 3;
/// Strata are never lower than this power of two: all rows would soon be as quick.
constexpr int kLeastExponent = 3;

/// A number that looks random: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

SamplePlan::SamplePlan(int64_t rows) : rows_(rows) {
  int exponent = 0;
  while (ceil_div(rows, int64_t{1} << exponent) > kMostFirstRows) ++exponent;
  if (exponent == 0) return;
  do {
    exponents_.push_back(exponent);
    exponent -= 2;
  } while (stages() < kStages && exponent >= kLeastExponent);
}

int64_t SamplePlan::row_of(int stage, int64_t stratum) const {
  const int shift = exponent(stage);
  const IndexRange rows{stratum << shift, std::min(rows_, (stratum + 1) << shift)};
  if (stage > 0) {
    const int64_t inherited = row_of(stage - 1, rows.begin >> exponent(stage - 1));
    if (rows.contains(inherited)) return inherited;
  }
  const uint64_t place = (static_cast<uint64_t>(stratum) << 6) + static_cast<uint64_t>(shift);
  return rows.begin + static_cast<int64_t>(scatter(place) % static_cast<uint64_t>(rows.size()));
}

std::vector<int64_t> SamplePlan::new_rows(int stage) const {
  std::vector<int64_t> rows;
  const int64_t strata = ceil_div(rows_, int64_t{1} << exponent(stage));
  for (int64_t stratum = 0; stratum < strata; ++stratum) {
    const int64_t row = row_of(stage, stratum);
    if (stage > 0 && row == row_of(stage - 1, row >> exponent(stage - 1))) continue;
    rows.push_back(row);
  }
  return rows;
}

SampledOverview::SampledOverview(const MapGeometry& geometry, Quantity quantity, bool differences)
    : geometry_(geometry),
      quantity_(quantity),
      differences_(differences),
      cols_(geometry.texel_cols(geometry.base_level)) {
  const int64_t rows = geometry.texel_rows(geometry.base_level);
  const bool logits = quantity == Quantity::logits || differences;
  max_.assign(static_cast<size_t>(rows * cols_),
              logits ? -std::numeric_limits<float>::infinity() : 0.0f);
  sum_.assign(max_.size(), 0);
  count_.assign(logits ? max_.size() : 0, 0);
  rows_.assign(static_cast<size_t>(rows), 0);
}

int64_t SampledOverview::bytes(const MapGeometry& geometry, Quantity quantity, bool differences) {
  const int64_t rows = geometry.texel_rows(geometry.base_level);
  const int64_t cols = geometry.texel_cols(geometry.base_level);
  return rows * cols * (quantity == Quantity::logits || differences ? 12 : 8) + rows * 4;
}

float SampledOverview::extreme(float a, float b) const {
  return differences_ ? larger_in_size(a, b) : std::max(a, b);
}

void SampledOverview::add(int64_t row, const TexelRow& texels) {
  const std::lock_guard lock(mutex_);
  const int64_t base_row = row >> geometry_.base_level;
  ++rows_[static_cast<size_t>(base_row)];
  for (int64_t c = 0; c < cols_; ++c) {
    const auto at = static_cast<size_t>(base_row * cols_ + c);
    const auto texel = static_cast<size_t>(c);
    max_[at] = extreme(max_[at], texels.max[texel]);
    sum_[at] += static_cast<float>(texels.sum[texel]);
    if (!count_.empty()) count_[at] += static_cast<int32_t>(texels.count[texel]);
  }
}

void SampledOverview::add_up(int64_t first, int64_t end, IndexRange cols, TexelRow& total,
                             int64_t& rows) const {
  rows = 0;
  for (int64_t row = first; row < end; ++row) {
    const int32_t added = rows_[static_cast<size_t>(row)];
    if (added == 0) continue;
    rows += added;
    for (int64_t c = cols.begin; c < cols.end; ++c) {
      const auto at = static_cast<size_t>(row * cols_ + c);
      const auto texel = static_cast<size_t>(c - cols.begin);
      total.max[texel] = extreme(total.max[texel], max_[at]);
      total.sum[texel] += static_cast<double>(sum_[at]);
      if (!count_.empty()) total.count[texel] += count_[at];
    }
  }
}

std::shared_ptr<MapTile> SampledOverview::cut(const TileId& id, int exponent) const {
  std::shared_ptr<MapTile> tile = make_tile(id, geometry_);
  tile->exact = false;
  tile->rows_per_texel = id.level > exponent ? int64_t{1} << (id.level - exponent) : 1;
  const int base = geometry_.base_level;
  const int group = std::max(id.level, exponent) - base;
  const int halvings = id.level - base;
  const int64_t first_col = (id.col * kTileSide) << halvings;
  const IndexRange cols{first_col, std::min(cols_, first_col + (tile->cols << halvings))};
  const std::lock_guard lock(mutex_);
  TexelRow texels;
  int64_t held = -1, rows = 0;
  for (int64_t r = 0; r < tile->rows; ++r) {
    const int64_t stratum = ((id.row * kTileSide + r) << halvings) >> group;
    if (stratum != held) {
      held = stratum;
      texels =
          differences_ ? TexelRow::of_differences(cols.size()) : TexelRow(cols.size(), quantity_);
      const int64_t all = geometry_.texel_rows(base);
      add_up(stratum << group, std::min(all, (stratum + 1) << group), cols, texels, rows);
      for (int i = 0; i < halvings; ++i) texels = texels.halved();
    }
    store_texels(*tile, geometry_, r, rows, texels, 0);
  }
  return tile;
}

}  // namespace attnscope
