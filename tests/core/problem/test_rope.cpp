#include <cmath>
#include <vector>

#include "core/problem/rope.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

/// q · k after both were turned as tokens i and j.
double turned_product(const HeadRotation& rotation, std::vector<float> q, std::vector<float> k,
                      int64_t i, int64_t j) {
  rotation.apply(i, q.data());
  rotation.apply(j, k.data());
  double sum = 0;
  for (size_t c = 0; c < q.size(); ++c) sum += double{q[c]} * double{k[c]};
  return sum;
}

std::vector<float> ramp(int64_t count, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(std::sin(step * static_cast<float>(i + 1)) + 0.5f);
  }
  return values;
}

}  // namespace

TEST_CASE("a rotation depends on the distance alone and keeps lengths") {
  const TokenGrid grid = TokenGrid::video(6 + 4 * 5 * 6, {4, 5, 6}, 6, TextPlace::start);
  const auto q = ramp(64, 0.3f), k = ramp(64, 0.7f);
  for (RopeFamily family : rope_families()) {
    std::vector<float> learnt;
    for (int i = 0; i < 3 * 2 * 32; ++i) learnt.push_back(0.001f * static_cast<float>(i % 37));
    const auto rotation = HeadRotation::make(family, grid, {64, 2, 1, 0, learnt});
    REQUIRE(rotation);
    INFO(rope_name(family));
    const int64_t a = grid.index_of({0, 1, 2}), b = grid.index_of({2, 3, 1});
    const int64_t c = grid.index_of({1, 2, 4}), d = grid.index_of({3, 4, 3});
    CHECK(turned_product(*rotation, q, k, a, b) ==
          Approx(turned_product(*rotation, q, k, c, d)).margin(1e-3));
    CHECK(turned_product(*rotation, q, k, a, b) !=
          Approx(turned_product(*rotation, q, k, a, d)).margin(1e-3));
    CHECK(turned_product(*rotation, q, q, b, b) ==
          Approx(turned_product(*rotation, q, q, a, a)).epsilon(1e-5));
  }
}

TEST_CASE("video rotations leave text alone") {
  const TokenGrid grid = TokenGrid::video(6 + 4 * 5 * 6, {4, 5, 6}, 6, TextPlace::start);
  const auto rotation = HeadRotation::make(RopeFamily::hunyuan, grid, {128, 1, 0, 0});
  REQUIRE(rotation);
  auto row = ramp(128, 0.2f);
  rotation->apply(3, row.data());
  CHECK(row == ramp(128, 0.2f));
}

TEST_CASE("angles are those of the families' definitions") {
  const TokenGrid grid = TokenGrid::video(4 * 5 * 6, {4, 5, 6}, 0, TextPlace::none);
  const auto angle = [&](RopeFamily family, int64_t d, int64_t channel, int64_t other) {
    const auto rotation = HeadRotation::make(family, grid, {d, 1, 0, 0});
    REQUIRE(rotation);
    std::vector<float> row(static_cast<size_t>(d));
    row[static_cast<size_t>(channel)] = 1;
    rotation->apply(grid.index_of({3, 2, 1}), row.data());
    return std::atan2(double{row[static_cast<size_t>(other)]},
                      double{row[static_cast<size_t>(channel)]});
  };
  // Channel 2 is the second pair of the t band; 16 channels of 64, base 10000.
  CHECK(angle(RopeFamily::cogvideox, 64, 2, 3) == Approx(3 * std::pow(10000, -2.0 / 16)));
  CHECK(angle(RopeFamily::cogvideox, 64, 16, 17) == Approx(2));
  CHECK(angle(RopeFamily::cogvideox, 64, 42, 43) == Approx(std::pow(10000, -2.0 / 24)));
  CHECK(angle(RopeFamily::hunyuan, 128, 2, 3) == Approx(3 * std::pow(256, -2.0 / 16)));
  CHECK(angle(RopeFamily::flux, 128, 74, 75) == Approx(std::pow(10000, -2.0 / 56)));
  CHECK(angle(RopeFamily::wan, 128, 44, 45) == Approx(2));
  CHECK(angle(RopeFamily::wan, 128, 88, 89) == Approx(std::pow(10000, -2.0 / 42)));
  CHECK(angle(RopeFamily::llama, 64, 31, 63) ==
        Approx(103 * std::pow(10000, -62.0 / 64)).margin(1e-6));
  // ltx: 60 channels in turns of t, y, x; the first pair that turns is t's, at position
  // 3 * 0.016, angle π/2 · (2 · 0.048 − 1).
  CHECK(angle(RopeFamily::ltx, 60, 0, 1) ==
        Approx(std::acos(-1.0) / 2 * (2 * 3 * 8.0 / 25 / 20 - 1)));
}

TEST_CASE("families that do not suit give nothing") {
  CHECK_FALSE(HeadRotation::make(RopeFamily::wan, TokenGrid::unknown(24), {64, 1, 0, 0}));
  const TokenGrid grid = TokenGrid::video(24, {2, 3, 4}, 0, TextPlace::none);
  CHECK_FALSE(HeadRotation::make(RopeFamily::hunyuan, grid, {24, 1, 0, 0}));
  CHECK_FALSE(HeadRotation::make(RopeFamily::llama, grid, {7, 1, 0, 0}));
  for (RopeFamily family : rope_families()) CHECK(parse_rope(rope_name(family)) == family);
  CHECK_FALSE(parse_rope("cogvideo"));
  CHECK_FALSE(HeadRotation::make(RopeFamily::mochi, grid, {64, 1, 0, 0}));
}
