// Where a token is found again in each frame.
#include <cmath>
#include <limits>
#include <vector>

#include "core/products/frame_track.h"
#include "tests/support/catch.h"

using namespace attnscope;

TEST_CASE("a track has the best match and the centre of mass of every frame") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> volume{0.0f, 0.25f, 0.25f, 0.0f, 0.0f, 0.5f,  // two rows of three
                                  none, 0.0f,  0.5f,  0.5f, none, 0.0f,  //
                                  0.0f, 0.0f,  0.0f,  0.0f, 0.0f, 0.0f};
  const auto track = frame_track(volume, {3, 2, 3});
  REQUIRE(track.size() == 3);
  CHECK(track[0].t == 0);
  CHECK(track[0].best_y == 1);
  CHECK(track[0].best_x == 2);
  CHECK(track[0].best_weight == 0.5);
  CHECK(track[0].mass == 1);
  CHECK(track[0].centre_y == std::optional(0.5));
  CHECK(track[0].centre_x == std::optional(1.75));
  // Of equal ones the first; cells without a number are none.
  CHECK(track[1].best_y == 0);
  CHECK(track[1].best_x == 2);
  CHECK(track[1].mass == 1);
  CHECK(track[1].centre_x == std::optional(1.0));
  CHECK(track[2].t == 2);
  CHECK(track[2].best_weight == 0);
  CHECK_FALSE(track[2].best_y);
  CHECK_FALSE(track[2].best_x);
  CHECK(track[2].mass == 0);
  CHECK_FALSE(track[2].centre_y);
  CHECK(frame_track({}, {0, 0, 0}).empty());
}
