// Calls that are pieces of a stream: what tells them apart, names them and selects them.
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Three frames of 2x3 cells a piece; the keys are those of the pieces before as well.
constexpr int64_t kTokens = 18;

std::string segment(const std::string& name, int64_t frames, int64_t first_frame) {
  return R"({"name":")" + name + R"(","modality":"video","count":)" + std::to_string(6 * frames) +
         R"(,"grid":[)" + std::to_string(frames) + R"(,2,3],"first_frame":)" +
         std::to_string(first_frame) + R"(,"position":)" + std::to_string(6 * first_frame) + "}";
}

ReferenceCall chunk_call(int64_t chunk) {
  ReferenceCall call({1, 2, 2, kTokens, kTokens * (chunk + 1), 8},
                     static_cast<uint64_t>(60 + chunk));
  const std::string own = segment("video", 3, 3 * chunk);
  const std::string cached = chunk == 0 ? "" : segment("cached", 3 * chunk, 0) + ",";
  call.version(2)
      .fact("step", "4")
      .fact("layer", "1")
      .fact("kind", "self")
      .fact("chunk", std::to_string(chunk))
      .fact("queries", "[" + own + "]")
      .fact("keys", "[" + cached + own + "]");
  return call;
}

std::string write_capture(const TemporaryFolder& folder) {
  const std::string path = folder / "dump";
  std::filesystem::create_directory(path);
  for (int64_t chunk = 0; chunk < 3; ++chunk) {
    chunk_call(chunk).write(path + "/" + std::to_string(chunk) + ".safetensors");
  }
  return path;
}

}  // namespace

TEST_CASE("chunks select calls, and numbers are told by them") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder);
  const Json all = heads_of({"stats", path});
  REQUIRE(all.size() == 6);
  for (size_t i = 0; i < all.size(); ++i) CHECK(all[i]["chunk"] == i / 2);
  CHECK(heads_of({"stats", path, "--chunks", "1-"}).size() == 4);
  CHECK(heads_of({"stats", path, "--chunks", "last"})[0]["chunk"] == 2);

  const auto wrong = run_attnscope({"stats", path, "--chunks", "7"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "--chunks 7"));
  const auto info = run_well({"info", path, "--no-scan"});
  CHECK(contains(info.out, "chunks     0"));
  CHECK(Json::parse(run_well({"info", path, "--no-scan", "--json"}).out)["calls"][2]["chunk"] == 2);
  CHECK(contains(run_well({"stats", path}).out, "chunk"));

  const Json rows = heads_of({"query", path, "--query", "1,1,2", "--chunks", "2"});
  CHECK(rows.size() == 2);
  CHECK(rows[0]["chunk"] == 2);
  CHECK(heads_of({"mask", path, "--mask", "topk:keep=0.5", "--chunks", "0"})[0]["chunk"] == 0);
  // Means over layers keep chunks apart.
  const Json means = heads_of({"query", path, "--index", "0", "--chunks", "0", "--mean", "layers"});
  CHECK(means[0]["chunk"] == 0);
}

TEST_CASE("rows of a chunk are over its own keys and the cache's") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder), out = folder / "row.npy";
  run_well({"query", path, "--index", "5", "--chunks", "1", "--segment", "cached", "-o", out,
            "--cache", "none"});
  const NpyArray array = read_npy(out);
  const std::vector<float> cached(array.values.begin(), array.values.begin() + kTokens);
  const auto row = chunk_call(1).row(0, 0, 5);
  CHECK(worst_error(cached, {row.begin(), row.begin() + kTokens}, 1e-6) < 1e-4);
}

TEST_CASE("exports and tables keep chunks apart, and read them back") {
  const TemporaryFolder folder;
  const std::string path = write_capture(folder), out = folder / "maps.h5";
  run_well({"export", path, "-o", out});
  const std::vector<std::string> names{"step0004_layer001_all_self_chunk000",
                                       "step0004_layer001_all_self_chunk001",
                                       "step0004_layer001_all_self_chunk002"};
  CHECK(group_members(out, "/calls") == names);
  run_well({"verify", out});
  const Json rows = heads_of({"query", out, "--index", "0", "--chunks", "1"});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["chunk"] == 1);
  run_well({"export", path, "-o", out, "--chunks", "1", "--force"});
  CHECK(group_members(out, "/calls") == std::vector<std::string>{"step0004_layer001_all_self"});
  const auto wrong = run_attnscope({"query", out, "--index", "0", "--chunks", "0"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "--chunks 0"));

  for (const char* name : {"stats.csv", "stats.h5"}) run_well({"stats", path, "-o", folder / name});
  CHECK(contains(read_file(folder / "stats.csv"), ",head,chunk,class,"));
  run_well({"stats", path, "-o", folder / "stats.h5", "--force", "--resume"});
  run_well({"render", folder / "stats.h5", "--picture", "heatmap", "--metric", "entropy", "-o",
            folder / "table.png"});
  run_well({"mask", path, "--mask", "topk:keep=0.5", "-o", folder / "mask.csv"});
  CHECK(contains(read_file(folder / "mask.csv"), "head,chunk,mask,"));
  run_well({"query", path, "--index", "0", "--chunks", "2", "-o", folder / "row.csv"});
  CHECK(contains(read_file(folder / "row.csv"), "head,chunk,segment,"));
  run_well({"convert", path, "-o", folder / "copy"});
  CHECK(heads_of({"stats", folder / "copy"}) == heads_of({"stats", path}));
}

TEST_CASE("chunks that cannot be are refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const auto error = [&](const ReferenceCall& call) {
    call.write(path);
    const auto result = run_attnscope({"info", path});
    CHECK(result.exit_code == 1);
    return result.err;
  };
  CHECK(contains(error(chunk_call(1).version(1)), "is a fact of the format"));
  ReferenceCall bad({1, 1, 1, 6, 6, 8}, 1);
  CHECK(contains(error(bad.version(2).fact("chunk", "-1")), "chunk: expected a whole number"));
  ReferenceCall few({1, 1, 1, 6, 12, 8}, 1);
  CHECK(contains(error(few.version(2).fact("chunk", "1")),
                 "chunk: its 12 keys are not its 6 queries: expected a token map of both"));
  const auto map = [&](const std::string& fact) {
    ReferenceCall call({1, 1, 1, 6, 6, 8}, 1);
    call.version(2).fact(
        "queries", R"([{"name":"a","modality":"video","count":6,"grid":[1,2,3],)" + fact + "}]");
    return error(call);
  };
  CHECK(contains(map(R"("position":-3)"), "[0].position: expected the number"));
  CHECK(contains(map(R"("position":6,"first_frame":2)"),
                 "[0].position: expected first_frame x rows x columns, as both are stated"));
  std::filesystem::create_directory(folder / "two");
  for (const char* file : {"a.safetensors", "b.safetensors"}) {
    chunk_call(1).write(folder.path() / "two" / file);
  }
  const auto twice = run_attnscope({"info", folder / "two"});
  CHECK(twice.exit_code == 1);
  CHECK(contains(twice.err, "layer 1 chunk 1, kind self (not recorded: branch) is also in"));
  // Influence cannot go from layer to layer where keys are others than queries.
  const std::string dump = write_capture(folder);
  const auto rollout = run_attnscope({"rollout", dump, "--index", "0", "--chunks", "1"});
  CHECK(rollout.exit_code == 2);
  CHECK(contains(rollout.err, "has other keys than queries (those of a cache)"));
  const auto mask = run_attnscope({"mask", dump, "--mask", "temporal", "--chunks", "1"});
  CHECK(mask.exit_code == 2);
  CHECK(contains(mask.err, "has other keys than queries (those of a cache)"));
}
