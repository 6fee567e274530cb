#include "core/problem/token_segment.h"

#include <algorithm>
#include <cassert>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 9> kModalities{
    "video", "image", "text", "audio", "reference", "history", "register", "padding", "other"};

/// `coordinate` names the axis as options do.
void check_coordinate(char coordinate, int64_t value, int64_t extent) {
  if (value >= 0 && value < extent) return;
  throw usage_error(std::string(1, coordinate) + " = " + std::to_string(value) +
                    " is outside the grid (valid: 0 to " + std::to_string(extent - 1) + ")");
}

using Extents = std::array<int64_t, 3>;

LatentCoord tiled_coord(int64_t token, const Extents& grid, const Extents& tile) {
  const auto [frames, height, width] = grid;
  const int64_t t0 = token / (tile[0] * height * width) * tile[0];
  const int64_t dt = std::min(tile[0], frames - t0);
  token -= t0 * height * width;
  const int64_t y0 = token / (dt * tile[1] * width) * tile[1];
  const int64_t dy = std::min(tile[1], height - y0);
  token -= y0 * dt * width;
  const int64_t x0 = token / (dt * dy * tile[2]) * tile[2];
  const int64_t dx = std::min(tile[2], width - x0);
  token -= x0 * dt * dy;
  return {t0 + token / (dy * dx), y0 + token % (dy * dx) / dx, x0 + token % dx};
}

int64_t tiled_token(LatentCoord at, const Extents& grid, const Extents& tile) {
  const auto [frames, height, width] = grid;
  const int64_t t0 = at.t / tile[0] * tile[0], y0 = at.y / tile[1] * tile[1],
                x0 = at.x / tile[2] * tile[2];
  const int64_t dt = std::min(tile[0], frames - t0);
  const int64_t dy = std::min(tile[1], height - y0);
  const int64_t dx = std::min(tile[2], width - x0);
  const int64_t before = t0 * height * width + y0 * dt * width + x0 * dt * dy;
  return before + ((at.t - t0) * dy + at.y - y0) * dx + at.x - x0;
}

}  // namespace

std::string_view modality_name(Modality modality) {
  return kModalities[static_cast<size_t>(modality)];
}

std::optional<Modality> parse_modality(std::string_view name) {
  for (size_t i = 0; i < kModalities.size(); ++i) {
    if (kModalities[i] == name) return static_cast<Modality>(i);
  }
  return std::nullopt;
}

std::vector<std::string> modality_names() { return {kModalities.begin(), kModalities.end()}; }

int64_t TokenSegment::valid_items() const {
  const size_t items = valid_tokens ? valid_tokens->size() : valid.size();
  return std::max<int64_t>(1, static_cast<int64_t>(items));
}

bool TokenSegment::is_valid(int64_t token, int64_t batch) const {
  const auto item = valid_items() == 1 ? size_t{0} : static_cast<size_t>(batch);
  if (valid_tokens) return (*valid_tokens)[item][static_cast<size_t>(token)] != 0;
  return valid.empty() || token < valid[item];
}

std::optional<LatentCoord> TokenSegment::coord(int64_t token) const {
  assert(token >= 0 && token < tokens.size());
  if (!has_grid() || (order == CellOrder::listed && !cells)) return std::nullopt;
  if (order == CellOrder::tiles) return tiled_coord(token, grid, tile);
  const int64_t at = cells ? (*cells)[static_cast<size_t>(token)] : token;
  const int64_t row = at / grid[2];
  return LatentCoord{row / grid[1], row % grid[1], at % grid[2]};
}

int64_t TokenSegment::token_at(LatentCoord place) const {
  if (!has_grid()) throw usage_error("a position T,Y,X needs a token grid, and none is known");
  check_inside(place, grid);
  const int64_t at = (place.t * grid[1] + place.y) * grid[2] + place.x;
  if (order == CellOrder::raster) return at;
  if (order == CellOrder::tiles) return tiled_token(place, grid, tile);
  if (!cells) {
    throw usage_error("a position T,Y,X needs the order of the cells, which is not known");
  }
  return std::find(cells->begin(), cells->end(), static_cast<int32_t>(at)) - cells->begin();
}

int64_t TokenSegment::held_bytes() const {
  auto bytes = static_cast<int64_t>(sizeof(TokenSegment) + name.size() + valid.size() * 8);
  if (cells) bytes += static_cast<int64_t>(cells->size() * sizeof(int32_t));
  if (valid_tokens) bytes += valid_items() * tokens.size();
  return bytes;
}

bool operator==(const TokenSegment& a, const TokenSegment& b) {
  const auto same = [](const auto& x, const auto& y) { return x == y || (x && y && *x == *y); };
  return a.name == b.name && a.modality == b.modality && a.tokens == b.tokens && a.grid == b.grid &&
         a.cell == b.cell && a.first_frame == b.first_frame && a.position == b.position &&
         a.order == b.order && a.tile == b.tile && a.valid == b.valid && same(a.cells, b.cells) &&
         same(a.valid_tokens, b.valid_tokens);
}

void check_inside(LatentCoord coord, const std::array<int64_t, 3>& grid) {
  check_coordinate('T', coord.t, grid[0]);
  check_coordinate('Y', coord.y, grid[1]);
  check_coordinate('X', coord.x, grid[2]);
}

}  // namespace attnscope
