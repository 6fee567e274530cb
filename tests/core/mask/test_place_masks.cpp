// Neighbourhoods on a grid and biases by place, entry by entry against their definitions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/mask/neighbourhood.h"
#include "core/mask/place_bias.h"
#include "tests/core/mask/mask_rectangles.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Three = std::array<int64_t, 3>;

/// The cells of an axis that a query sees: the windows of its residue, listed.
std::set<int64_t> seen_along(int64_t cells, int64_t window, int64_t stride, int64_t dilation,
                             bool causal, int64_t at) {
  std::vector<int64_t> places;
  for (int64_t cell = at % dilation; cell < cells; cell += dilation) places.push_back(cell);
  const auto place = std::find(places.begin(), places.end(), at) - places.begin();
  const auto last = std::ssize(places) - 1;
  const int64_t group = place - place % stride;
  const int64_t leader = std::min(causal ? group + stride - 1 : group + stride / 2, last);
  int64_t first = causal ? leader - window + 1 : leader - window / 2;
  if (!causal && first + window > last + 1) first = last + 1 - window;
  if (first < 0) first = 0;
  std::set<int64_t> seen;
  for (int64_t i = first; i <= (causal ? int64_t{place} : first + window - 1); ++i) {
    seen.insert(places.at(static_cast<size_t>(i)));
  }
  return seen;
}

/// Where a token's cell is, or nothing.
std::optional<Three> cell_of(const Three& grid, int64_t first, int64_t token) {
  const int64_t at = token - first;
  if (at < 0 || at >= grid[0] * grid[1] * grid[2]) return std::nullopt;
  return Three{at / (grid[1] * grid[2]), at / grid[2] % grid[1], at % grid[2]};
}

MaskDefinition neighbourhood_of(const Neighbourhood& form, const Three& grid, int64_t first) {
  return [=](int64_t, int64_t, int64_t i, int64_t j) {
    const auto query = cell_of(grid, first, i), key = cell_of(grid, first, j);
    bool seen = true;
    for (size_t axis = 0; axis < 3 && query && key; ++axis) {
      seen = seen && seen_along(grid[axis], form.window[axis], form.stride[axis],
                                form.dilation[axis], form.causal[axis], (*query)[axis])
                             .count((*key)[axis]) != 0;
    }
    return masked_unless(seen);
  };
}

Neighbourhood form_of(const std::string& text) {
  const auto form = parse_neighbourhood(text);
  REQUIRE(form);
  return *form;
}

HeadNumbers random_numbers(const Three& shape) {
  std::mt19937_64 random(5);
  HeadNumbers numbers{{shape[0], shape[1]}, {}, shape[2]};
  for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; ++i) {
    numbers.each.push_back(static_cast<float>(pick(random, -900, 900)) / 64);
  }
  return numbers;
}

float number(const HeadNumbers& numbers, int64_t b, int64_t h, int64_t place) {
  const int64_t item = numbers.shape[0] == 1 ? 0 : b, head = numbers.shape[1] == 1 ? 0 : h;
  return numbers.each.at(
      static_cast<size_t>((item * numbers.shape[1] + head) * numbers.count + place));
}

}  // namespace

TEST_CASE("neighbourhoods keep as many cells at borders as within, of even windows too") {
  for (const auto& [text, grid] :
       std::vector<std::pair<std::string, Three>>{{"1x1x1", {3, 5, 4}},
                                                  {"3x3x3", {3, 5, 4}},
                                                  {"2x4x3", {3, 5, 7}},
                                                  {"2x2x6", {5, 3, 6}},
                                                  {"1x5x4", {1, 9, 11}}}) {
    const Neighbourhood form = form_of(text);
    CHECK(form.text() == text);
    const int64_t cells = grid[0] * grid[1] * grid[2];
    const Mask mask = neighbourhood_mask(form, grid, 6);
    const MaskShape shape{1, 1, cells + 9, cells + 9};
    const MaskDefinition definition = neighbourhood_of(form, grid, 6);
    INFO(text);
    check_mask(mask, definition, shape, true);
    for (int64_t i = 6; i < cells + 6; ++i) {
      int64_t kept = 0;
      for (int64_t j = 0; j < cells + 9; ++j) kept += definition(0, 0, i, j) == 0 ? 1 : 0;
      CHECK(kept == 9 + form.window[0] * form.window[1] * form.window[2]);
    }
    CHECK(mask.describe() == "natten:" + text);
    CHECK_FALSE(mask.has_finite_bias());
    CHECK(mask.identity() != neighbourhood_mask(form, grid, 7).identity());
  }
  // What NATTEN's own kernel keeps of eight cells, a window of four and a stride of two.
  std::string rows;
  const Mask strided = neighbourhood_mask(form_of("1x1x4,stride=1x1x2"), {1, 1, 8}, 0);
  for (int64_t i = 0; i < 8; ++i) {
    float row[8];
    strided.fill_bias(0, 0, {&i, 1}, {0, 8}, row, 8);
    for (const float bias : row) rows += bias == 0 ? 'x' : '.';
    rows += ' ';
  }
  CHECK(rows == "xxxx.... xxxx.... .xxxx... .xxxx... ...xxxx. ...xxxx. ....xxxx ....xxxx ");
}

TEST_CASE("neighbourhoods with strides, dilations and causal axes") {
  for (const std::string text :
       {"3x4x2,stride=2x3x2", "2x3x2,dilation=2x3x5", "3x2x5,causal=t", "2x4x3,causal=tyx",
        "2x4x3,stride=2x2x3,dilation=2x2x3,causal=y", "4x1x9,stride=4x1x9,causal=tx"}) {
    const Three grid{5, 9, 11};
    const Neighbourhood form = form_of(text);
    INFO(text);
    CHECK(form.text() == text);
    const MaskShape shape{1, 1, 5 * 9 * 11 + 2, 5 * 9 * 11 + 2};
    check_mask(neighbourhood_mask(form, grid, 2), neighbourhood_of(form, grid, 2), shape, true,
               300);
  }
}

TEST_CASE("neighbourhoods that are none are told") {
  for (const char* bad : {"", "3x5", "3x5x5x1", "0x1x1", "-1x1x1", "3x5x5,", "3x5x5,3x5x5",
                          "3x5x5,stride=2", "3x5x5,stride=1x1x1,stride=1x1x1", "3x5x5,causal=z",
                          "3x5x5,causal=tt", "3x5x5,causal=", "stride=1x1x1", "3x5x5,window=1x1x1",
                          "3x 5x5", "3x5x99999999999999999999"}) {
    INFO(bad);
    CHECK_FALSE(parse_neighbourhood(bad));
  }
  const auto says = [](const std::string& text, const std::vector<std::string>& parts) {
    return refused(
        [&] {
          neighbourhood_mask(form_of(text), {4, 6, 8}, 0);
        },
        ErrorCode::usage, parts);
  };
  CHECK(says("5x6x8", {"natten:5x6x8", "5 cells along t", "4x6x8", "has 4"}) == "");
  CHECK(says("4x2x5,dilation=1x3x2", {"5 cells of dilation 2 along x", "has 8"}) == "");
  CHECK(says("4x2x5,stride=1x3x1", {"stride 3 along y", "window's 2"}) == "");
  const Mask mask = neighbourhood_mask(form_of("1x2x3"), {4, 6, 8}, 2);
  CHECK(refused([&] { mask.check_shape(1, 1, 194, 195); }, ErrorCode::usage, {"194", "195"}) == "");
  CHECK(refused([&] { mask.check_shape(1, 1, 193, 193); }, ErrorCode::usage, {"4x6x8"}) == "");
}

TEST_CASE("relative biases are told by the difference of places") {
  for (const Three& shape : {Three{1, 3, 159}, Three{2, 3, 159}, Three{1, 1, 159}}) {
    HeadNumbers numbers = random_numbers(shape);
    // Far keys are masked, and a head has none.
    for (int64_t i = 0; i < 40; ++i)
      numbers.each[static_cast<size_t>(i)] = i < 20 ? -1e30f : kMasked;
    if (shape[1] > 1) std::fill_n(numbers.each.begin() + 159, 159, 0.0f);
    const auto definition = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      const float bias = number(numbers, b, h, i - j + 69);
      return bias < -1e9f ? kMasked : bias;
    };
    const Mask mask = relative_bias_mask(numbers, 70);
    check_mask(mask, definition, {2, 3, 90, 70}, true);
    CHECK(mask.has_finite_bias());
    CHECK(mask.describe() == "relative_bias");
    HeadNumbers later{numbers.shape, {}, numbers.count};
    later.read = [&](int64_t item, int64_t head) {
      const auto first = numbers.each.begin() + (item * numbers.shape[1] + head) * numbers.count;
      return std::vector<float>(first, first + numbers.count);
    };
    const Mask read = relative_bias_mask(later, 70);
    check_mask(read, definition, {2, 3, 90, 70}, true);
    CHECK(read.identity() == mask.identity());
    HeadNumbers other = numbers;
    other.each.back() += 1;
    CHECK(relative_bias_mask(other, 70).identity() != mask.identity());
  }
  const Mask mask = relative_bias_mask(random_numbers({2, 3, 159}), 70);
  CHECK(refused([&] { mask.check_shape(3, 3, 90, 70); }, ErrorCode::usage, {"2 batch items"}) ==
        "");
  CHECK(refused([&] { mask.check_shape(2, 4, 90, 70); }, ErrorCode::usage, {"3 heads", "4"}) == "");
  CHECK(refused([&] { mask.check_shape(2, 3, 91, 70); }, ErrorCode::usage, {"159", "160"}) == "");
  CHECK(refused([&] { mask.check_shape(2, 3, 70, 90); }, ErrorCode::usage, {"159"}) == "");
  HeadNumbers bad = random_numbers({2, 3, 5});
  bad.each[24] = std::nanf("");
  CHECK(refused([&] { relative_bias_mask(bad, 3); }, ErrorCode::value,
                {"batch 1, head 1, place 4"}) == "");
}

TEST_CASE("relative biases on a grid are told by the difference of cells") {
  const Three grid{2, 4, 3};
  const HeadNumbers numbers = random_numbers({2, 3, 3 * 7 * 5});
  const Mask mask = grid_bias_mask(numbers, grid, 5);
  check_mask(
      mask,
      [&](int64_t b, int64_t h, int64_t i, int64_t j) {
        const auto query = cell_of(grid, 5, i), key = cell_of(grid, 5, j);
        if (!query || !key) return 0.0f;
        const auto [t, y, x] = *query;
        const auto [t2, y2, x2] = *key;
        return number(numbers, b, h, ((t - t2 + 1) * 7 + y - y2 + 3) * 5 + x - x2 + 2);
      },
      {2, 3, 32, 32}, false);
  CHECK(mask.classify(0, 0, {0, 32}, {0, 32}) == TileClass::mixed);
  CHECK(mask.identity() != grid_bias_mask(numbers, grid, 4).identity());
  CHECK(refused([&] { mask.check_shape(2, 3, 28, 28); }, ErrorCode::usage, {"29", "28"}) == "");
  CHECK(refused([&] { mask.check_shape(2, 3, 32, 33); }, ErrorCode::usage, {"33 keys"}) == "");
}
