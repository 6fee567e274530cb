#include "tests/support/catch.h"
#include "viewer/screen/window_icon.h"

using namespace attnscope;

TEST_CASE("the window's icon is a small map with round corners and a bright diagonal") {
  for (const int side : {16, 32, 128}) {
    const std::vector<uint8_t> icon = window_icon(side);
    REQUIRE(icon.size() == static_cast<size_t>(side) * static_cast<size_t>(side) * 4);
    const auto channel = [&](int row, int col, int which) {
      return icon[static_cast<size_t>((row * side + col) * 4 + which)];
    };
    CHECK(channel(0, 0, 3) == 0);
    CHECK(channel(side - 1, side - 1, 3) == 0);
    CHECK(channel(side / 2, side / 2, 3) == 255);
    // The middle of the second token's own cell, the first token's column, and a far cell.
    const int own = side / 4, far = side * 7 / 12;
    CHECK(channel(own, own, 0) == 253);
    CHECK(channel(far, side / 12, 1) > channel(own, far, 1));
    CHECK(channel(own, far, 2) > channel(own, far, 1));
  }
}
