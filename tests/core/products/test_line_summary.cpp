#include "core/products/line_summary.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("a line's masses and its largest tokens") {
  const TokenGrid grid = TokenGrid::video(14, {2, 2, 3}, 2, TextPlace::start);
  const std::vector<float> line{8, 0.5f, 1, 2, 3, 4, 5, 6, 0, 0, 7, 7, 0, 1};
  CHECK(mass_on(line, grid.text_range()) == 8.5);
  CHECK(mass_on(line, grid.video_range()) == 36);
  CHECK(mass_on(line, {}) == 0);
  CHECK(frame_masses(line, grid) == std::vector<double>{21, 15});
  CHECK(frame_masses(line, TokenGrid::unknown(14)).empty());
  CHECK(largest_tokens(line, {0, 14}, 4) == std::vector<int64_t>{0, 10, 11, 7});
  CHECK(largest_tokens(line, {2, 6}, 1) == std::vector<int64_t>{5});
  CHECK(largest_tokens(line, {8, 10}, 5) == std::vector<int64_t>{8, 9});
  CHECK(largest_tokens(line, {0, 14}, 0).empty());
}
