#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/service_harness.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kA{0, 0, 0}, kB{0, 0, 3};
constexpr double kNone = -std::numeric_limits<double>::infinity();

AttentionCase described(std::string_view mask, int64_t rows, int64_t keys,
                        ScoreFunction score = ScoreFunction::softmax) {
  AttentionCase c;
  c.shape = {1, 4, 2, rows, keys, 24};
  c.mask = mask;
  c.score = score;
  c.seed = 7;
  return c;
}

/// The difference of two maps in double.
struct DifferenceReference {
  DifferenceReference(const Oracle& oracle, Quantity quantity, Difference difference)
      : a(oracle, kA, quantity), b(oracle, kB, quantity), how(difference) {}

  /// −inf where there is none.
  double at(int64_t row, int64_t key) const {
    const double x = a.at(row, key), y = b.at(row, key);
    if (how == Difference::log_ratio) return x > 0 && y > 0 ? std::log2(x / y) : kNone;
    if (std::isinf(x) || std::isinf(y)) return kNone;
    return how == Difference::absolute ? std::abs(x - y) : x - y;
  }
  bool close(double got, double expected) const {
    if (std::isinf(expected)) return got == expected;
    const double size = how == Difference::log_ratio ? 1 : 1e-3;
    return std::abs(got - expected) <= 2e-3 * std::abs(expected) + 2e-3 * size + a.absolute;
  }

  /// Empty, or the first texel that is not as it should be.
  std::string differs(const MapTile& tile, int64_t& checked) const {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t c = 0; c < tile.cols; ++c) {
        const std::string wrong = differs(tile, r, c, checked);
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

  MapReference a, b;
  Difference how;

 private:
  std::string differs(const MapTile& tile, int64_t r, int64_t c, int64_t& checked) const {
    const int level = tile.id.level;
    const int64_t row = (tile.id.row * kTileSide + r) << level;
    const int64_t col = (tile.id.col * kTileSide + c) << level;
    double largest = 0, sum = 0;
    int64_t count = 0;
    bool masked = true;
    for (int64_t i = row; i < std::min(a.rows, row + (int64_t{1} << level)); ++i) {
      for (int64_t j = col; j < std::min(a.cols, col + (int64_t{1} << level)); ++j) {
        masked = masked && a.is_masked(i, j) && b.is_masked(i, j);
        const double value = at(i, j);
        if (std::isinf(value)) continue;
        if (count == 0 || std::abs(value) > std::abs(largest)) largest = value;
        sum += value;
        ++count;
      }
    }
    const auto place = static_cast<size_t>(r * tile.cols + c);
    const double got = tile.max[place], mean = tile.mean[place];
    if (count == 0 || masked) largest = kNone;
    const double expected_mean = std::isinf(largest) ? kNone : sum / static_cast<double>(count);
    ++checked;
    // Of two that are next to the same size, either may be the largest.
    const bool right = close(got, largest) || (!std::isinf(largest) && close(-got, largest));
    if (right && close(mean, expected_mean)) return "";
    return "level " + std::to_string(level) + ", texel " + std::to_string(row) + ", " +
           std::to_string(col) + ": " + std::to_string(got) + " for " + std::to_string(largest) +
           ", mean " + std::to_string(mean) + " for " + std::to_string(expected_mean);
  }
};

std::vector<TileId> difference_tiles(const MapGeometry& geometry, Quantity quantity,
                                     const Against& against, int first_level) {
  std::vector<TileId> tiles;
  for (int level = geometry.top_level; level >= first_level; --level) {
    for (int64_t row = 0; row < geometry.tile_rows(level); ++row) {
      for (int64_t col = 0; col < geometry.tile_cols(level); ++col) {
        tiles.push_back({kA, quantity, level, row, col, against});
      }
    }
  }
  return tiles;
}

WishesByKind wanted(const std::vector<TileId>& tiles, bool exactly) {
  WishesByKind wishes;
  wishes.tiles = tiles;
  const TileId& first = tiles.front();
  if (exactly) wishes.exact_differences = {{first.head, first.quantity, *first.against}};
  return wishes;
}

}  // namespace

TEST_CASE("differences are taken entry by entry on every level") {
  struct Case {
    std::string_view mask;
    Quantity quantity;
    Difference how;
  };
  const Case cases[] = {
      {"none", Quantity::weights, Difference::signed_difference},
      {"causal", Quantity::weights, Difference::signed_difference},
      {"causal", Quantity::weights, Difference::log_ratio},
      {"masked_rows", Quantity::weights, Difference::absolute},
      {"causal", Quantity::logits, Difference::signed_difference},
      {"none", Quantity::logits, Difference::absolute},
  };
  for (const Case& c : cases) {
    const Oracle oracle(described(c.mask, 700, 331));
    const DifferenceReference reference(oracle, c.quantity, c.how);
    ServiceHarness harness(oracle.problem());
    TileService& service = harness.service();
    const auto tiles = difference_tiles(service.geometry(kA), c.quantity, {kB, c.how}, 0);
    harness.want(wanted(tiles, true));
    REQUIRE(harness.wait_idle());
    CHECK(service.status().problem.empty());
    CHECK(service.status().exact_progress == 1);
    int64_t checked = 0;
    for (const TileId& id : tiles) {
      INFO("mask " << c.mask << ", " << difference_name(c.how));
      const auto tile = find(service, id);
      REQUIRE(tile);
      CHECK(tile->exact);
      CHECK(tile->id == id);
      CHECK(reference.differs(*tile, checked) == "");
    }
    CHECK(checked > 700 * 331);
    // A tile of the head itself is another tile.
    CHECK(find(service, TileId{kA, c.quantity, 0, 0, 0}) == nullptr);
  }
}

TEST_CASE("a large difference is sampled first, fine where it is looked at, and then exact") {
  const Oracle oracle(described("none", 4101, 1203));
  const DifferenceReference reference(oracle, Quantity::weights, Difference::signed_difference);
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  const MapGeometry geometry = service.geometry(kA);
  REQUIRE(geometry.base_level == 1);
  const Against against{kB, Difference::signed_difference};
  auto tiles = difference_tiles(geometry, Quantity::weights, against, geometry.base_level);
  const TileId fine{kA, Quantity::weights, 0, 9, 2, against};
  tiles.push_back(fine);
  harness.want(wanted(tiles, false));
  REQUIRE(harness.wait_idle());
  int64_t checked = 0, positive = 0, negative = 0;
  CHECK(reference.differs(*find(service, fine), checked) == "");
  const auto top = find(service, tiles.front());
  REQUIRE(top);
  CHECK_FALSE(top->exact);
  for (const float value : top->max) (value > 0 ? positive : negative) += 1;
  CHECK(positive > 100);
  CHECK(negative > 100);

  harness.want(wanted(tiles, true));
  REQUIRE(harness.wait_idle());
  for (const TileId& id : tiles) {
    const auto tile = find(service, id);
    REQUIRE(tile);
    CHECK(tile->exact);
    CHECK(reference.differs(*tile, checked) == "");
  }
  CHECK(checked > 1203 * 4101 / 4);
}

TEST_CASE("rows are compared from a sample first, then all") {
  const Oracle oracle(described("masked_rows", 1500, 283));
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  WishesByKind wishes;
  wishes.divergence = HeadsCompared{kA, kB};
  harness.want(wishes);
  std::vector<int64_t> computed;
  REQUIRE(harness.wait([&] {
    const auto now = find(service, HeadsCompared{kA, kB});
    if (now && (computed.empty() || computed.back() != now->computed)) {
      computed.push_back(now->computed);
    }
    return now && now->exact;
  }));
  CHECK(computed.back() == 1500);
  const auto all = find(service, HeadsCompared{kA, kB});
  int64_t compared = 0;
  for (int64_t row = 0; row < 1500; ++row) {
    const Oracle::Row a = oracle.row(0, 0, row), b = oracle.row(0, 3, row);
    double expected = 0, mass = 0;
    for (size_t j = 0; j < a.weights.size(); ++j) {
      const double p = a.weights[j], q = b.weights[j], m = (p + q) / 2;
      if (p > 0) expected += p * std::log2(p / m) / 2;
      if (q > 0) expected += q * std::log2(q / m) / 2;
      mass += p;
    }
    const double got = all->rows[static_cast<size_t>(row)];
    if (mass == 0) {
      CHECK(std::isnan(got));
      continue;
    }
    ++compared;
    if (std::abs(got - expected) > 1e-5) CHECK(got == expected);
  }
  CHECK(compared > 100);
  CHECK(find(service, HeadsCompared{kB, kA}) == nullptr);
}

TEST_CASE("what cannot be compared is refused, and nothing changes") {
  const Oracle oracle(described("none", 300, 300));
  ServiceHarness harness(oracle.problem());
  WishesByKind wishes;
  wishes.tiles = {{kA, Quantity::logits, 0, 0, 0, Against{kB, Difference::log_ratio}}};
  CHECK_THROWS_WITH(harness.want(wishes), Catch::Contains("no such difference"));
  wishes.tiles = {{kA, Quantity::weights, 0, 0, 0, Against{{0, 0, 9}, Difference::absolute}}};
  CHECK_THROWS_WITH(harness.want(wishes), Catch::Contains("no map of"));
  CHECK(harness.service().status().queue == 0);
}

TEST_CASE("two heads are compared within the memory") {
  const Oracle oracle(described("none", 4101, 1203));
  TileService::Settings settings = ServiceHarness::small_settings();
  settings.memory = int64_t{52} << 20;
  ServiceHarness harness(oracle.problem(), settings);
  TileService& service = harness.service();
  for (const Difference how : {Difference::signed_difference, Difference::absolute}) {
    const auto tiles = difference_tiles(service.geometry(kA), Quantity::weights, {kB, how}, 1);
    harness.want(wanted(tiles, true));
    REQUIRE(harness.wait_idle());
    CHECK(service.status().problem.empty());
    CHECK(service.status().host_bytes <= settings.memory);
    CHECK(find(service, tiles.front())->exact);
  }
}
