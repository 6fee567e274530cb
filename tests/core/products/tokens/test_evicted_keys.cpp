#include "core/products/tokens/evicted_keys.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

TokenSegment segment(int64_t begin, int64_t count, std::optional<int64_t> position) {
  TokenSegment made;
  made.name = "s" + std::to_string(begin);
  made.modality = Modality::video;
  made.tokens = {begin, begin + count};
  made.position = position;
  return made;
}

/// 40 tokens of a stream.
TokenGrid stream() { return TokenGrid::of_segments({segment(0, 40, 0)}); }

}  // namespace

TEST_CASE("keys that a rolling window dropped are evicted, later ones are not") {
  // Pieces of ten: all before, then a sink of four and the ten latest.
  const std::vector<QuerySpan> spans{
      {{0, 10}, {0, 10}}, {{10, 20}, {0, 20}},  {{20, 30}, {0, 4}},        {{20, 30}, {10, 30}},
      {{30, 40}, {0, 4}}, {{30, 40}, {20, 30}}, {{30, 40}, {30, 40}, true}};
  const std::vector<EvictedKeys> expected{{{20, 30}, {4, 10}}, {{30, 40}, {4, 20}}};
  CHECK(evicted_keys(spans, stream(), stream()) == expected);
  CHECK(expected[0].holds(20, 9));
  CHECK_FALSE(expected[0].holds(20, 10));
  CHECK_FALSE(expected[0].holds(30, 9));
}

TEST_CASE("single queries that miss the same keys are one rectangle") {
  std::vector<QuerySpan> spans{{{0, 8}, {0, 8}, true}};
  for (int64_t i = 8; i < 12; ++i) spans.push_back({{i, i + 1}, {3, i + 1}});
  CHECK(evicted_keys(spans, stream(), stream()) == std::vector<EvictedKeys>{{{8, 12}, {0, 3}}});
}

TEST_CASE("a key that is left by another version of it is not evicted") {
  // 20 keys that caches hold, then the 30 keys of the pieces themselves.
  const TokenGrid keys = TokenGrid::of_segments({segment(0, 20, 0), segment(20, 30, 0)});
  const TokenGrid queries = TokenGrid::of_segments({segment(0, 30, 0)});
  const std::vector<QuerySpan> spans{{{0, 10}, {20, 30}},
                                     {{10, 20}, {0, 10}},
                                     {{10, 20}, {30, 40}},
                                     {{20, 30}, {10, 20}},
                                     {{20, 30}, {40, 50}}};
  // The last piece sees the second alone: the first is gone in both versions.
  CHECK(evicted_keys(spans, queries, keys) ==
        std::vector<EvictedKeys>{{{20, 30}, {0, 10}}, {{20, 30}, {20, 30}}});
}

TEST_CASE("without positions nothing is evicted") {
  const TokenGrid bare = TokenGrid::of_segments({segment(0, 40, std::nullopt)});
  const std::vector<QuerySpan> spans{{{0, 40}, {30, 40}}};
  CHECK(evicted_keys(spans, bare, stream()).empty());
  CHECK(evicted_keys(spans, stream(), bare).empty());
  CHECK(evicted_keys(spans, TokenGrid::unknown(40), TokenGrid::unknown(40)).empty());
  CHECK(evicted_keys({}, stream(), stream()).empty());
}

TEST_CASE("cells are evicted where all of their entries are") {
  const std::vector<EvictedKeys> evicted{{{4, 8}, {0, 4}}, {{8, 12}, {0, 2}}, {{8, 12}, {2, 6}}};
  // Blocks of four by four; the last column of cells has two keys.
  CHECK(evicted_cells(evicted, {0, 12}, {0, 10}, 4) ==
        std::vector<uint8_t>{0, 0, 0, 1, 0, 0, 1, 0, 0});
  CHECK(evicted_cells(evicted, {8, 12}, {0, 6}, 4) == std::vector<uint8_t>{1, 1});
  // Of a crop, only what lies in it counts.
  CHECK(evicted_cells(evicted, {5, 7}, {1, 5}, 2) == std::vector<uint8_t>{1, 0});
  CHECK(evicted_cells({}, {0, 4}, {0, 4}, 4) == std::vector<uint8_t>{0});
}

TEST_CASE("a line is evicted where it is for every chosen token") {
  const std::vector<EvictedKeys> evicted{{{2, 4}, {0, 3}}, {{4, 6}, {1, 5}}};
  const auto line = [&](std::vector<int64_t> tokens, bool reverse = false) {
    return evicted_line(evicted, tokens, 6, reverse);
  };
  CHECK(line({2}) == std::vector<uint8_t>{1, 1, 1, 0, 0, 0});
  CHECK(line({3, 5}) == std::vector<uint8_t>{0, 1, 1, 0, 0, 0});
  CHECK(line({0, 5}) == std::vector<uint8_t>(6, 0));
  CHECK(line({}) == std::vector<uint8_t>(6, 0));
  CHECK(line({0}, true) == std::vector<uint8_t>{0, 0, 1, 1, 0, 0});
  CHECK(line({0, 4}, true) == std::vector<uint8_t>(6, 0));
  CHECK(line({1, 2}, true) == std::vector<uint8_t>{0, 0, 1, 1, 1, 1});
}
