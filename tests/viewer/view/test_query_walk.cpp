// A query that is moved by one, and the entries of a row by their size.
#include <cmath>
#include <limits>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/tensor_files.h"
#include "viewer/view/query_walk.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

// Four words before four frames of 2 x 3.
const TokenGrid kGrid = TokenGrid::video(28, {4, 2, 3}, 4, TextPlace::start);

std::vector<int64_t> walked(std::vector<int64_t> tokens, WalkAxis axis, int64_t by) {
  return walked_query(kGrid, tokens, axis, by).tokens;
}

}  // namespace

TEST_CASE("a query goes along the video's axes, and stops with words at its ends") {
  using enum WalkAxis;
  const int64_t token = kGrid.index_of({1, 0, 1});
  CHECK(walked({token}, x, 1) == std::vector{kGrid.index_of({1, 0, 2})});
  CHECK(walked({token}, x, -1) == std::vector{kGrid.index_of({1, 0, 0})});
  CHECK(walked({token}, y, 1) == std::vector{kGrid.index_of({1, 1, 1})});
  CHECK(walked({token}, t, 2) == std::vector{kGrid.index_of({3, 0, 1})});
  CHECK(walked({token}, t, -1) == std::vector{kGrid.index_of({0, 0, 1})});
  for (const auto& [axis, by] : {std::pair(x, 2), {x, -2}, {y, -1}, {y, 2}, {t, 3}, {t, -2}}) {
    const std::string text = thrown_text(ErrorCode::usage, [&] { walked({token}, axis, by); });
    CHECK(contains(text, "beyond the video"));
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  thrown_text(ErrorCode::usage, [&] { walked({token}, x, most); });
  thrown_text(ErrorCode::usage, [&] { walked({token}, x, -most - 1); });
  // A box moves as a whole, or not at all.
  const int64_t beside = kGrid.index_of({1, 0, 2});
  CHECK(walked({token, beside}, y, 1) ==
        std::vector{kGrid.index_of({1, 1, 1}), kGrid.index_of({1, 1, 2})});
  thrown_text(ErrorCode::usage, [&] { walked({token, beside}, x, 1); });
}

TEST_CASE("a word of the prompt goes along the sequence alone") {
  CHECK(walked({2}, WalkAxis::x, 1) == std::vector<int64_t>{3});
  CHECK(walked({3}, WalkAxis::x, 1) == std::vector<int64_t>{4});
  thrown_text(ErrorCode::usage, [] { walked({0}, WalkAxis::x, -1); });
  CHECK(contains(thrown_text(ErrorCode::usage, [] { walked({0}, WalkAxis::t, 1); }),
                 "walk t 1: the token has no place in the video"));
}

TEST_CASE("entries come by size, equal ones by place, and what has no number is left out") {
  MapLine line;
  line.values = {1, 5, std::nanf(""), 5, 3, -INFINITY, 9, 1};
  line.masked = {0, 0, 0, 0, 0, 0, 1, 0};
  std::vector<int64_t> down;
  for (auto at = next_by_value(line, {}, false); at; at = next_by_value(line, at, false)) {
    down.push_back(*at);
  }
  CHECK(down == std::vector<int64_t>{1, 3, 4, 0, 7});
  std::vector<int64_t> up{7};
  for (auto at = next_by_value(line, 7, true); at; at = next_by_value(line, at, true)) {
    up.push_back(*at);
  }
  CHECK(up == std::vector<int64_t>{7, 0, 4, 3, 1});
  CHECK(next_by_value(line, {}, true) == 1);
  CHECK_FALSE(next_by_value({}, {}, true));
}
