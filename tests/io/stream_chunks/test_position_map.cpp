#include <optional>
#include <random>
#include <vector>

#include "io/stream_chunks/position_map.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a position stands for what was assigned to it last") {
  constexpr int64_t kPositions = 60;
  std::mt19937_64 random(13);
  struct Token {
    size_t sequence = 0;
    int64_t token = 0;
    bool own = false;
    bool operator==(const Token&) const = default;
  };
  for (int round = 0; round < 100; ++round) {
    PositionMap map;
    std::vector<std::optional<Token>> expected(kPositions);
    for (int step = 0; step < 30; ++step) {
      const int64_t begin = pick(random, 0, kPositions), end = pick(random, begin, kPositions);
      // Often what goes on with a neighbour.
      const PositionMap::Run run{static_cast<size_t>(pick(random, 0, 1)),
                                 begin + pick(random, 0, 1) * 100, pick(random, 0, 1) == 1};
      map.assign({begin, end}, run);
      for (int64_t p = begin; p < end; ++p) {
        expected[static_cast<size_t>(p)] = Token{run.sequence, run.first + p - begin, run.own};
      }
      std::vector<std::optional<Token>> found;
      const int64_t first = pick(random, 0, kPositions - 1);
      map.visit({first, kPositions}, [&](IndexRange part, const PositionMap::Run* of) {
        REQUIRE(part.begin == first + static_cast<int64_t>(found.size()));
        for (int64_t p = part.begin; p < part.end; ++p) {
          found.push_back(of == nullptr ? std::nullopt
                                        : std::optional(Token{
                                              of->sequence, of->first + p - part.begin, of->own}));
        }
      });
      REQUIRE(found == std::vector(expected.begin() + first, expected.end()));
    }
  }
}

TEST_CASE("neighbours that go on with each other are one run") {
  PositionMap map;
  map.assign({10, 20}, {1, 5});
  map.assign({20, 30}, {1, 15});
  map.assign({30, 40}, {1, 26});
  std::vector<IndexRange> parts;
  map.visit_all([&](IndexRange part, const PositionMap::Run&) { parts.push_back(part); });
  CHECK(parts == std::vector<IndexRange>{{10, 30}, {30, 40}});
}
