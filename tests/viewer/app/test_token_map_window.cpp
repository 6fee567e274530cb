// A capture with a token map in the window: rulers name its parts, each grid has its film.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// [text, ref1 (1x3x4), video (2x3x4), audio] in two slots of a block, and a call without a layer.
void write_capture(const TemporaryFolder& folder) {
  const Json map = Json::array(
      {{{"name", "words"}, {"modality", "text"}, {"count", 4}, {"words", {"a", "dog"}}},
       {{"name", "ref1"}, {"modality", "reference"}, {"count", 12}, {"grid", {1, 3, 4}}},
       {{"name", "video"}, {"modality", "video"}, {"count", 24}, {"grid", {2, 3, 4}}},
       {{"name", "audio"}, {"modality", "audio"}, {"count", 5}}});
  std::filesystem::create_directory(folder.path() / "capture");
  const auto write = [&](const char* file, const char* layer, const char* block, const char* slot) {
    ReferenceCall call({1, 2, 2, 45, 45, 8}, 9);
    call.version(2).fact("queries", map.dump()).fact("block", block).fact("slot", slot);
    if (*layer != '\0') call.fact("layer", layer);
    call.write(folder.path() / "capture" / file);
  };
  write("a.safetensors", "0", "blocks.0", "attn1");
  write("b.safetensors", "0", "blocks.0", "audio_attn");
  write("c.safetensors", "", "refiner.0", "attn");
}

}  // namespace

TEST_CASE("the window films any grid of a token map, and shows its parts") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_capture(folder);
  const WindowResult result = run_window(
      folder.path().string(), {"capture", "--slots", "attn1"},
      "wait exact\nexpect slot == attn1\nexpect segment == none\nquery 1 2 3\nwait query\n"
      "shot video.png\nsegment ref1\nwait idle\nexpect segment == ref1\nshot ref1.png\n"
      "click \"Query/video\"\nwait idle\nexpect segment == video\nshot again.png\n"
      "click \"Query/ref1\"\nwait idle\nclick \"Query/t0\"\nwait query\nprint query\n"
      "slot audio_attn\nwait exact\nexpect layer == 0\nblock refiner.0\nwait exact\n"
      "expect layer == -1\nexpect slot == attn\nsave-session looked.session\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  // A click on the film of a reference picks one of its tokens.
  CHECK(contains(result.out, "ref1 ("));
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("video.png") != bytes("ref1.png"));
  // The film of the video has the same pixels by its own name.
  CHECK(bytes("video.png").size() > 1000);
  CHECK(contains(bytes("looked.session"), "\nsegment ref1\n"));
  CHECK(contains(bytes("looked.session"), "block refiner.0 slot attn "));
  const WindowResult again =
      run_window(folder.path().string(), {"--session", "looked.session"},
                 "wait exact\nexpect block == refiner.0\nexpect segment == ref1\nsegment ref2\n");
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, "segment ref2: no such grid, did you mean ref1? (ref1, video)"));
}
