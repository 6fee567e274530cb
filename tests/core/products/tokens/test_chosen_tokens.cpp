#include "core/products/tokens/chosen_tokens.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("places and words add up to tokens and their shares") {
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::end);
  const std::vector<IndexRange> words{{1, 3}, {2, 3}};
  const ChosenTokens chosen = choose_tokens({7, 62, 7, 3}, words, grid);
  CHECK(chosen.tokens == std::vector<int64_t>{3, 7, 61, 62});
  CHECK(chosen.counts == std::vector<int64_t>{1, 1, 1, 3});
  CHECK(chosen.items == 5);
  CHECK(chosen.text == std::vector<int64_t>{1, 2});
  CHECK(chosen.shares() == std::vector<double>{0.2, 0.2, 0.2, 0.6});
  CHECK_FALSE(single_coord(chosen, grid));
}

TEST_CASE("words that are repeated count once, as places do") {
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::start);
  const std::vector<IndexRange> words{{2, 3}, {1, 3}, {2, 3}};
  const ChosenTokens chosen = choose_tokens({}, words, grid);
  CHECK(chosen.items == 2);
  CHECK(chosen.tokens == std::vector<int64_t>{1, 2});
  CHECK(chosen.shares() == std::vector<double>{0.5, 1.0});
}

TEST_CASE("a single token of the video has a place") {
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::start);
  CHECK(single_coord(choose_tokens({4 + 20 + 13}, {}, grid), grid) ==
        std::array<int64_t, 3>{1, 2, 3});
  CHECK_FALSE(single_coord(choose_tokens({3}, {}, grid), grid));
  CHECK_FALSE(single_coord(choose_tokens({4, 5}, {}, grid), grid));
}
