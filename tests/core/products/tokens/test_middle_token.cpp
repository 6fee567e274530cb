#include "core/products/tokens/middle_token.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("the middle token is one of the video, else of what is there") {
  const TokenGrid grid = TokenGrid::video(64, {3, 4, 5}, 4, TextPlace::start);
  CHECK(middle_token(grid, {0, 64}) == 4 + 20 + 2 * 5 + 2);
  // Of a part without it: of its video, and where it has none of its text.
  CHECK(middle_token(grid, {0, 14}) == 4 + 5);
  CHECK(middle_token(grid, {0, 4}) == 2);
}
