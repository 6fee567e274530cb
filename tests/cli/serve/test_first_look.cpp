// The first tile, which serve computes before anybody looks.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "cli/serve/first_look.h"
#include "cli/serve/tiles_options.h"
#include "kernels/backend_factory.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"
#include "viewer/tiles/capture_tiles.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// The tiles of a capture, and the hello of one whose first call has weights.
struct Looked {
  explicit Looked(const std::filesystem::path& path)
      : capture(Capture::open(path)),
        backend(make_backend(BackendKind::automatic)),
        tiles(capture, *backend, options().of_captures(capture), false, [] {}) {
    hello.calls.resize(1);
  }
  static TilesOptions options() {
    TilesOptions options;
    options.cache = "none";
    return options;
  }
  /// Once everything has come to rest.
  bool rests(FirstLook& first) {
    return becomes([&] {
      first.look();
      return !first.waiting() && !tiles.status().busy;
    });
  }

  Capture capture;
  std::unique_ptr<TileBackend> backend;
  CaptureTiles tiles;
  RemoteHello hello;
};

TileId whole_map(const TileSource& tiles) {
  TileId id;
  id.level = tiles.geometry({}).top_level;
  return id;
}

}  // namespace

TEST_CASE("a first picture is there before anybody looks, and no more than that") {
  Looked looked(sample("moving-shapes"));
  FirstLook first(looked.tiles, looked.hello);
  CHECK(first.waiting());
  REQUIRE(looked.rests(first));
  const auto tile = find(looked.tiles, whole_map(looked.tiles));
  REQUIRE(tile);
  CHECK(*std::max_element(tile->max.begin(), tile->max.end()) > 0);
  HeadId other;
  other.head = 1;
  TileId of_other = whole_map(looked.tiles);
  of_other.head = other;
  CHECK_FALSE(find(looked.tiles, of_other));
}

TEST_CASE("nothing is computed beforehand of exports and of logits") {
  for (const bool computed : {false, true}) {
    Looked looked(sample("moving-shapes"));
    looked.hello.computed = computed;
    looked.hello.calls.front().weights = !computed;
    FirstLook first(looked.tiles, looked.hello);
    CHECK_FALSE(first.waiting());
    REQUIRE(looked.rests(first));
    CHECK_FALSE(find(looked.tiles, whole_map(looked.tiles)));
  }
}

TEST_CASE("what cannot be computed beforehand is not tried for ever") {
  const TemporaryFolder folder;
  std::vector<float> values(4 * 8, 1);
  values[9] = std::numeric_limits<float>::quiet_NaN();
  CallFile()
      .tensor("q", "F32", {1, 1, 4, 8}, raw(values))
      .tensor("k", "F32", {1, 1, 4, 8}, raw(values))
      .version(1)
      .write(folder.path() / "call.safetensors");
  Looked looked(folder.path() / "call.safetensors");
  FirstLook first(looked.tiles, looked.hello);
  REQUIRE(looked.rests(first));
  CHECK_FALSE(find(looked.tiles, whole_map(looked.tiles)));
}
