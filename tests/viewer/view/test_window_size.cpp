#include "tests/support/catch.h"
#include "viewer/view/window_size.h"

using namespace attnscope;

TEST_CASE("a window opens as large as the display's scale asks, within the work area") {
  CHECK(first_window_size(1, {0, 0}) == WindowSize{1280, 800});
  CHECK(first_window_size(1, {1920, 1080}) == WindowSize{1280, 800});
  CHECK(first_window_size(1.5f, {3840, 2160}) == WindowSize{1920, 1200});
  CHECK(first_window_size(2, {3840, 2100}) == WindowSize{2560, 1600});
  CHECK(first_window_size(2, {1920, 1160}) == WindowSize{1920, 1160});
  CHECK(first_window_size(1, {1024, 700}) == WindowSize{1024, 700});
  CHECK(first_window_size(1, {100, 100}) == kLeastWindow);
}
