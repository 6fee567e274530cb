#include "tests/support/backend/place_masks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

#include "core/mask/neighbourhood.h"
#include "core/mask/place_bias.h"

namespace attnscope::test {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

double allow(bool allowed) { return allowed ? 0 : kMasked; }

std::vector<float> normal_numbers(int64_t count, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(normal(random));
  return numbers;
}

/// Slopes a batch item and head, of which one is 0, under a causal mask from the last token.
MaskCase linear_biases(const Shape& s) {
  std::vector<float> slopes;
  for (int64_t i = 0; i < s.batch * s.heads; ++i) {
    // Weights far below 2^-100 of their row may be 0 or not, as the map is cut: gentle ones first.
    const float steepness = i < 2 ? 0.02f : 2.0f;
    slopes.push_back(i % 5 == 3 ? 0.0f : steepness / static_cast<float>(i + 1));
  }
  const int64_t shift = s.keys - s.queries;
  const Mask mask = Mask::window(-1, 0, shift) & alibi_mask({{s.batch, s.heads}, slopes}, shift);
  return {"", mask, [=](int64_t b, int64_t h, int64_t i, int64_t j) {
            const double slope = double{slopes[static_cast<size_t>(b * s.heads + h)]};
            return j > i + shift ? kMasked : -slope * static_cast<double>(i + shift - j);
          }};
}

/// A grid of two frames and five columns within a sequence, behind three tokens.
struct GridPlace {
  explicit GridPlace(const Shape& s) : grid{2, (s.keys - 4) / 10, 5} {}
  std::array<int64_t, 3> grid;
  int64_t first = 3;
  /// Of a token's cell along each axis; nothing outside.
  std::optional<std::array<int64_t, 3>> cell(int64_t token) const {
    const int64_t at = token - first;
    if (at < 0 || at >= grid[0] * grid[1] * grid[2]) return std::nullopt;
    return std::array{at / grid[2] / grid[1], at / grid[2] % grid[1], at % grid[2]};
  }
};

/// Along y windows of 4 rows, shared by two queries; every other column, of which two are seen.
MaskCase neighbourhoods(const Shape& s) {
  const GridPlace place(s);
  const Neighbourhood form{{2, 4, 2}, {1, 2, 1}, {1, 1, 2}, {true, false, false}};
  return {"", neighbourhood_mask(form, place.grid, place.first), [=](auto, auto, auto i, auto j) {
            const auto q = place.cell(i), k = place.cell(j);
            if (!q || !k) return 0.0;
            const int64_t leader = std::min((*q)[1] / 2 * 2 + 1, place.grid[1] - 1);
            const int64_t y = std::min(std::max<int64_t>(leader - 2, 0), place.grid[1] - 4);
            const bool columns =
                (*q)[2] % 2 == 1
                    ? (*k)[2] % 2 == 1
                    : (*k)[2] % 2 == 0 && std::abs((*k)[2] - ((*q)[2] == 0   ? 1
                                                              : (*q)[2] == 2 ? 1
                                                                             : 3)) <= 1;
            return allow((*k)[0] <= (*q)[0] && (*k)[1] >= y && (*k)[1] < y + 4 && columns);
          }};
}

/// A number a head and difference of places: 0 for one head; of another, keys far ahead are masked.
MaskCase relative_biases(const Shape& s) {
  HeadNumbers numbers{{1, s.heads}, {}, s.queries + s.keys - 1};
  numbers.each = normal_numbers(s.heads * numbers.count, 2, 23);
  std::fill_n(numbers.each.begin() + numbers.count, s.heads > 1 ? numbers.count : 0, 0.0f);
  std::fill_n(numbers.each.begin(), numbers.count / 3, -1e9f);
  return {"", relative_bias_mask(numbers, s.keys), [=](auto, auto h, auto i, auto j) {
            const int64_t at = h * numbers.count + i - j + s.keys - 1;
            const float bias = numbers.each[static_cast<size_t>(at)];
            return bias == -1e9f ? kMasked : double{bias};
          }};
}

MaskCase grid_biases(const Shape& s) {
  const GridPlace place(s);
  std::array<int64_t, 3> extent{};
  for (size_t axis = 0; axis < 3; ++axis) extent[axis] = 2 * place.grid[axis] - 1;
  HeadNumbers numbers{{s.batch, s.heads}, {}, extent[0] * extent[1] * extent[2]};
  numbers.each = normal_numbers(s.batch * s.heads * numbers.count, 2, 29);
  return {"", grid_bias_mask(numbers, place.grid, place.first),
          [=](auto b, auto h, auto i, auto j) {
            const auto q = place.cell(i), k = place.cell(j);
            if (!q || !k) return 0.0;
            int64_t at = b * s.heads + h;
            for (size_t axis = 0; axis < 3; ++axis) {
              at = at * extent[axis] + (*q)[axis] - (*k)[axis] + place.grid[axis] - 1;
            }
            return double{numbers.each[static_cast<size_t>(at)]};
          }};
}

}  // namespace

std::optional<MaskCase> place_mask_case(std::string_view name, const Shape& shape) {
  if (name == "alibi_bias") return linear_biases(shape);
  if (name == "relative_bias") return relative_biases(shape);
  if (name == "grid_bias") return grid_biases(shape);
  if (name == "natten") return neighbourhoods(shape);
  return std::nullopt;
}

}  // namespace attnscope::test
