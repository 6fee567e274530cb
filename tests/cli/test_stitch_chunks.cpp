// convert --stitch of chunks of a stream, as a user runs it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kFrame = 12, kWidth = 8;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string video(const std::string& name, int64_t first, int64_t frames) {
  return fmt::format(
      R"({{"name":"{}","modality":"video","count":{},"grid":[{},3,4],"position":{}}})", name,
      frames * kFrame, frames, first * kFrame);
}

/// Tokens of a stream; `turn` makes others of them.
std::string tokens(int64_t first, int64_t frames, double turn) {
  std::vector<float> values;
  for (int64_t i = first * kFrame * kWidth; i < (first + frames) * kFrame * kWidth; ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i) * 0.7 + turn)));
  }
  return raw(values);
}

/// Chunk `chunk` of two frames each, which attends to all frames before, or to those from `kept`
/// on; `turn`: of cached keys.
void write_chunk(const std::string& folder, int64_t layer, int64_t chunk, double turn = 0,
                 int64_t kept = 0) {
  const int64_t first = 2 * chunk, frames = first - kept + 2;
  CallFile call;
  call.version(2)
      .tensor("q", "F32", {1, 1, 2 * kFrame, kWidth}, tokens(first, 2, 1))
      .tensor("k", "F32", {1, 1, frames * kFrame, kWidth},
              tokens(kept, first - kept, turn) + tokens(first, 2, 0))
      .fact("layer", std::to_string(layer))
      .fact("kind", "self")
      .fact("chunk", std::to_string(chunk))
      .fact("queries", "[" + video("video", first, 2) + "]")
      .fact("keys", "[" + (chunk > 0 ? video("cached", kept, first - kept) + "," : "") +
                        video("video", first, 2) + "]");
  call.write(fmt::format("{}/layer{}_chunk{}.safetensors", folder, layer, chunk));
}

}  // namespace

TEST_CASE("convert --stitch makes one map of a stream, filmed over all of its frames") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump", whole = folder / "whole";
  std::filesystem::create_directory(dump);
  for (int64_t chunk = 0; chunk < 3; ++chunk) write_chunk(dump, 1, chunk);
  auto result = run_attnscope({"convert", "--stitch", dump, "-o", whole});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  result = run_attnscope({"info", whole, "--json", "--no-scan"});
  const Json call = Json::parse(result.out)["calls"][0];
  CHECK(call["queries"] == 72);
  CHECK(call["keys"] == 72);
  CHECK_FALSE(call.contains("chunk"));
  // The row of a token of the third chunk, in the chunk's call and in the joined one.
  const auto row = [&](const std::string& capture, const std::string& query,
                       const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"export", capture,   "-o",  folder / "row.h5", "--index",
                                       query,    "--dtype", "f32", "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto exported = run_attnscope(arguments);
    INFO(exported.err);
    REQUIRE(exported.exit_code == 0);
    const std::string group = group_members(folder / "row.h5", "/calls").at(0);
    return read_dataset(folder / "row.h5", "/calls/" + group + "/weights").values;
  };
  CHECK(row(whole, "50", {}) == row(dump, "2", {"--chunks", "2"}));
  const auto earlier = row(whole, "30", {});
  CHECK(std::vector<double>(earlier.begin(), earlier.begin() + 48) ==
        row(dump, "6", {"--chunks", "1"}));
  CHECK(std::all_of(earlier.begin() + 48, earlier.end(), [](double w) { return w == 0; }));
  result = run_attnscope({"query", whole, "--query", "5,1,2", "-o", folder / "film.png"});
  CHECK(result.exit_code == 0);
}

TEST_CASE("a mosaic hatches what a cache had dropped, as the matrix does") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump", whole = folder / "whole";
  std::filesystem::create_directory(dump);
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t chunk = 0; chunk < 3; ++chunk) {
      write_chunk(dump, layer, chunk, 0, layer == 1 ? std::max<int64_t>(0, 2 * chunk - 1) : 0);
    }
  }
  REQUIRE(run_attnscope({"convert", "--stitch", dump, "-o", whole}).exit_code == 0);
  const auto rendered = [&](const std::string& picture, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"render", whole,    "--picture", picture, "--block",
                                       "12",     "--json", "--force",   "-o",    folder / "a.png"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_attnscope(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return Json::parse(result.out);
  };
  // Chunk 1 has lost frame 0, chunk 2 frames 0 to 2, for two rows of cells each.
  const Json matrix = rendered("matrix", {"--layers", "1"});
  CHECK(matrix["evicted_cells"] == 2 * 1 + 2 * 3);
  CHECK(rendered("mosaic", {"--layers", "1"})["evicted_cells"] == matrix["evicted_cells"]);
  CHECK(rendered("mosaic", {})["evicted_cells"] == matrix["evicted_cells"]);
  CHECK_FALSE(rendered("mosaic", {"--layers", "0"}).contains("evicted_cells"));
}

TEST_CASE("convert --stitch writes what can be joined, and tells what cannot by its exit code") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump", whole = folder / "whole";
  std::filesystem::create_directory(dump);
  for (int64_t chunk = 0; chunk < 3; ++chunk) {
    write_chunk(dump, 1, chunk);
    write_chunk(dump, 2, chunk, 0.25 * static_cast<double>(chunk));
  }
  auto result = run_attnscope({"convert", "--stitch", dump, "-o", whole, "--quiet"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err,
                 "layer 2: chunks are not joined: the keys at positions 0 "
                 "to 23 differ between chunks 1 and 2"));
  const Json info = Json::parse(run_attnscope({"info", whole, "--json", "--no-scan"}).out);
  CHECK(info["calls"].size() == 1);
  CHECK(info["calls"][0]["layer"] == 1);

  result = run_attnscope({"convert", "--stitch", dump, "-o", folder / "none", "--layers", "2"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "--stitch: no call is left to write"));
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
  result = run_attnscope({"convert", "--stitch", whole, "-o", folder / "none"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "no selected call is a piece of a stream"));
  // Chunks that are not selected are missing.
  result = run_attnscope(
      {"convert", "--stitch", dump, "--layers", "1", "--chunks", "!1", "-o", folder / "less"});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "without chunk 1; no rows of positions 24 to 47"));
}
