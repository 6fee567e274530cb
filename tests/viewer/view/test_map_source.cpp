#include "tests/support/catch.h"
#include "viewer/view/map_source.h"

using namespace attnscope;

TEST_CASE("a legend names what the softmax is taken over") {
  MapSource call;
  CHECK(softmax_text(call) == "softmax over all keys");
  call.mask = "causal";
  CHECK(softmax_text(call) == "softmax over the keys that the mask leaves (causal)");
  call.score = ScoreFunction::sigmoid;
  CHECK(softmax_text(call).empty());
  // An export's line says what it holds, and the mask where there is one.
  MapSource exported;
  exported.about = "export of queries 0:4 × keys 0:4, f16";
  CHECK(softmax_text(exported).empty());
  exported.mask = "window:2";
  CHECK(softmax_text(exported) == "softmax over the keys that the mask leaves (window:2)");
}
