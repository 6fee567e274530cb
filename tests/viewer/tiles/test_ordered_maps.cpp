#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/problem/token_order.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 0, 1}, kOther{0, 0, 3};

AttentionCase described(std::string_view mask, int64_t rows, int64_t keys,
                        ScoreFunction score = ScoreFunction::softmax) {
  AttentionCase c;
  c.shape = {1, 4, 2, rows, keys, 24};
  c.mask = mask;
  c.score = score;
  c.seed = 11;
  return c;
}

PlaceOrder shuffled(int64_t tokens, unsigned seed) {
  std::vector<int32_t> order(static_cast<size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return PlaceOrder(std::move(order));
}

/// The map in double, with its rows and keys moved to their places.
MapReference moved(MapReference map, const MapPlaces& places) {
  const MapReference stored = map;
  for (int64_t row = 0; row < map.rows; ++row) {
    for (int64_t key = 0; key < map.cols; ++key) {
      const auto to = static_cast<size_t>(row * map.cols + key);
      const auto from =
          static_cast<size_t>(places.rows.token(row) * map.cols + places.keys.token(key));
      map.entries[to] = stored.entries[from];
      map.masked[to] = stored.masked[from];
    }
  }
  return map;
}

std::vector<TileId> all_tiles(const MapGeometry& geometry, const HeadId& head, Quantity quantity) {
  std::vector<TileId> tiles;
  for (int level = geometry.top_level; level >= 0; --level) {
    for (int64_t row = 0; row < geometry.tile_rows(level); ++row) {
      for (int64_t col = 0; col < geometry.tile_cols(level); ++col) {
        tiles.push_back({head, quantity, level, row, col});
      }
    }
  }
  return tiles;
}

}  // namespace

TEST_CASE("a map in another order has every entry of the double-precision map at its place") {
  struct Case {
    ScoreFunction score;
    std::string_view mask;
    int64_t rows, keys;
  };
  for (const Case& c : {Case{ScoreFunction::softmax, "none", 331, 283},
                        {ScoreFunction::softmax, "causal_and_keys", 331, 283},
                        {ScoreFunction::softmax, "dense_float", 331, 283},
                        {ScoreFunction::sigmoid, "window", 331, 283},
                        // Finer tiles than the base level.
                        {ScoreFunction::softmax, "key_lengths", 4101, 1203}}) {
    const Oracle oracle(described(c.mask, c.rows, c.keys, c.score));
    INFO(oracle.text());
    ServiceHarness harness(oracle.problem(),
                           {.memory = int64_t{512} << 20, .threads = 2, .cache_folders = {}});
    TileService& service = harness.service();
    for (const bool both : {true, false}) {
      const MapPlaces places{shuffled(c.rows, 1), both ? shuffled(c.keys, 2) : PlaceOrder()};
      HeadId head = kHead;
      head.order = service.order_number(places);
      CHECK(head.order > 0);
      CHECK(service.order_number(places) == head.order);
      for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
        const MapReference reference = moved(MapReference(oracle, kHead, quantity), places);
        const std::vector<TileId> tiles = all_tiles(service.geometry(head), head, quantity);
        harness.want({{}, {}, tiles, {head}});
        REQUIRE(harness.wait([&] { return service.exact(head) && !service.status().busy; }));
        CHECK(service.status().problem.empty());
        for (const TileId& id : tiles) {
          const auto tile = find(service, id);
          REQUIRE(tile);
          CHECK(tile->exact);
          CHECK(reference.differs(*tile) == "");
        }
      }
    }
  }
}

TEST_CASE("a difference in another order is that of the same tokens") {
  const Oracle oracle(described("causal", 331, 331));
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  const MapPlaces places{shuffled(331, 1), shuffled(331, 2)};
  const MapReference a = moved(MapReference(oracle, kHead, Quantity::weights), places);
  const MapReference b = moved(MapReference(oracle, kOther, Quantity::weights), places);
  TileId id{kHead, Quantity::weights, 0, 0, 0};
  id.head.order = service.order_number(places);
  id.against = Against{kOther, Difference::signed_difference};
  id.against->other.order = id.head.order;
  harness.want({{}, {}, {id}, {}});
  REQUIRE(harness.wait([&] { return find(service, id) != nullptr && find(service, id)->exact; }));
  const auto tile = find(service, id);
  int64_t wrong = 0;
  for (int64_t r = 0; r < tile->rows; ++r) {
    for (int64_t k = 0; k < tile->cols; ++k) {
      if (a.is_masked(r, k)) continue;
      const double expected = a.at(r, k) - b.at(r, k);
      const float got = tile->max[static_cast<size_t>(r * tile->cols + k)];
      if (!(std::abs(static_cast<double>(got) - expected) <= 2 * a.absolute + 1e-4)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("row sums of a map in another order are not kept for the stored one") {
  const TemporaryFolder folder;
  const Oracle oracle(described("none", 331, 283));
  const MapPlaces places{shuffled(331, 1), {}};
  const TileService::Settings settings{
      .memory = int64_t{64} << 20, .threads = 2, .cache_folders = {folder.path()}};
  {
    ServiceHarness harness(oracle.problem(), settings);
    HeadId head = kHead;
    head.order = harness.service().order_number(places);
    harness.want({{}, {}, {}, {head}});
    REQUIRE(harness.wait([&] { return harness.service().exact(head); }));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  // And those of the stored one serve it alone.
  const MapReference reference = moved(MapReference(oracle, kHead, Quantity::weights), places);
  for (int round = 0; round < 2; ++round) {
    ServiceHarness harness(oracle.problem(), settings);
    HeadId head = kHead;
    head.order = harness.service().order_number(places);
    const std::vector<TileId> tiles =
        all_tiles(harness.service().geometry(head), head, Quantity::weights);
    harness.want({{}, {}, tiles, {kHead, head}});
    REQUIRE(harness.wait([&] {
      return harness.service().exact(kHead) && harness.service().exact(head) &&
             !harness.service().status().busy;
    }));
    for (const TileId& id : tiles) CHECK(reference.differs(*find(harness.service(), id)) == "");
  }
}

TEST_CASE("orders that nobody made, or that are of other tokens, are refused") {
  const Oracle oracle(described("none", 331, 283));
  ServiceHarness harness(oracle.problem());
  TileService& service = harness.service();
  CHECK(service.order_number({}) == 0);
  HeadId head = kHead;
  head.order = 1;
  CHECK(refused(
            [&] {
              harness.want({{}, {}, {}, {head}});
            },
            ErrorCode::usage, {"no order of tokens has the number 1"}) == "");
  head.order = service.order_number({shuffled(100, 1), {}});
  CHECK(refused(
            [&] {
              harness.want({{}, {}, {}, {head}});
            },
            ErrorCode::usage, {"an order of other tokens"}) == "");
}
