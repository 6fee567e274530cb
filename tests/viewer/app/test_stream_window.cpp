// The joined chunks of a stream in the window: what a cache had dropped is hatched and named; of a
// capture of chunks, each can be chosen.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/stream_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::vector<Json> probes(const TemporaryFolder& folder, const std::string& file) {
  const WindowResult result = run_window(
      folder.path().string(), {file},
      "wait exact\nprobe 30 8\nprobe 30 2\nprobe 30 40\nprobe 40 20\nprobe 40 30\nshot " + file +
          ".png\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<Json> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("{")) lines.push_back(Json::parse(line));
  }
  REQUIRE(lines.size() == 5);
  return lines;
}

}  // namespace

TEST_CASE("keys that a cache had dropped are hatched, others that the mask leaves out are not") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  joined_call(true).write(folder.path() / "placed.safetensors");
  joined_call(false).write(folder.path() / "bare.safetensors");
  const std::vector<Json> placed = probes(folder, "placed.safetensors");
  const std::vector<bool> evicted{true, false, false, true, false};
  for (size_t i = 0; i < placed.size(); ++i) {
    INFO(placed[i].dump());
    CHECK(placed[i].contains("evicted") == evicted[i]);
  }
  CHECK(placed[2]["logit"].is_null());  // masked, for it comes later
  for (const Json& probe : probes(folder, "bare.safetensors"))
    CHECK_FALSE(probe.contains("evicted"));
  CHECK(read_bytes(folder.path() / "placed.safetensors.png") !=
        read_bytes(folder.path() / "bare.safetensors.png"));
}

TEST_CASE("evicted cells are hatched over the pictures of the video as well") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::filesystem::path sample = project_folder() + "/samples/moving-shapes";
  for (const bool positions : {true, false}) {
    const std::filesystem::path dump = folder.path() / (positions ? "placed" : "bare");
    std::filesystem::create_directory(dump);
    joined_call(positions).write(dump / "joined.safetensors");
    Json frames = Json::array();
    for (int t = 0; t < 8; ++t) {
      std::filesystem::copy_file(sample / fmt::format("frame{}.png", t % 7),
                                 dump / fmt::format("frame{}.png", t));
      frames.push_back({{"file", fmt::format("frame{}.png", t)}, {"t", t}});
    }
    const Json catalogue{{"format", "attnscope-capture/1"},
                         {"frames", frames},
                         {"calls", {{{"file", "joined.safetensors"}, {"step", 0}, {"layer", 0}}}}};
    std::ofstream(dump / "capture.json") << catalogue.dump();
    const std::string name = dump.filename().string();
    const WindowResult result =
        run_window(folder.path().string(), {name, "--cache", "none"},
                   "size 800 600\nquery 6 0 1\npane query\nfilm tint\nwait exact\nshot " + name +
                       ".png\nfilm " + name + ".gif\n");
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  CHECK(read_bytes(folder.path() / "placed.png") != read_bytes(folder.path() / "bare.png"));
  CHECK(read_bytes(folder.path() / "placed.gif") != read_bytes(folder.path() / "bare.gif"));
}

TEST_CASE("the window shows the chunk that is chosen") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "dump");
  for (const int64_t chunk : {0, 1, 4}) {
    const auto map = [&](const char* name, int64_t first, int64_t count) {
      return fmt::format(
          R"({{"name":"{}","modality":"video","count":{},"grid":[{},2,3],"position":{}}})", name,
          6 * count, count, 6 * first);
    };
    ReferenceCall call({1, 1, 1, 12, 12 + 12 * chunk, 8}, 7);
    const std::string cached = chunk > 0 ? map("cached", 0, 2 * chunk) + "," : "";
    call.version(2)
        .fact("kind", "self")
        .fact("chunk", std::to_string(chunk))
        .fact("queries", "[" + map("video", 2 * chunk, 2) + "]")
        .fact("keys", "[" + cached + map("video", 2 * chunk, 2) + "]");
    call.write(folder.path() / "dump" / fmt::format("{}.safetensors", chunk));
  }
  const WindowResult result = run_window(
      folder.path().string(), {"dump", "--chunks", "1"},
      "wait exact\nexpect chunk == 1\nexpect cols == 24\nchunk 4\nwait exact\nexpect chunk == 4\n"
      "expect cols == 60\nsave-session looked.session\nshot chunk.png\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(read_bytes(folder.path() / "looked.session"), "\nchunk 4 "));
}
