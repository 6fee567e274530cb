#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "viewer/view/maps/map_source.h"

using namespace attnscope;
using namespace attnscope::test;

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

TEST_CASE("what a cache had dropped is known of calls whose tokens have positions") {
  const TemporaryFolder folder;
  const auto sources = [&](const std::string& position, const std::string& mask) {
    CallFile call;
    call.version(2)
        .pair({1, 1, 6, 8}, {1, 1, 6, 8})
        .fact("mask", mask)
        .fact("queries", R"([{"name":"t","modality":"text","count":6)" + position + "}]");
    const std::vector<int64_t> rows{0, 3, 0, 3, 1, 3, 6, 2, 6, 0};
    if (mask == "spans") call.tensor("mask_spans", "I64", {2, 5}, raw(rows));
    call.write(folder.path() / "call.safetensors");
    return map_sources(Capture::open(folder.path() / "call.safetensors"));
  };
  const MapSource call = sources(R"(,"position":0)", "spans").front();
  CHECK(call.evicted == std::vector<EvictedKeys>{{{3, 6}, {0, 2}}});
  CHECK(call.is_evicted(4, 1));
  CHECK_FALSE(call.is_evicted(2, 1));
  CHECK_FALSE(call.is_evicted(1, 2));
  CHECK(sources("", "spans").front().evicted.empty());
  CHECK(sources(R"(,"position":0)", "causal").front().evicted.empty());
}
