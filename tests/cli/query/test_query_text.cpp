#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr double kFloor = 1e-3 / 26;
constexpr double kTolerance = 2e-4;

/// 4 text tokens, then 2 x 3 x 4 video tokens.
ReferenceCall joint_call() {
  ReferenceCall call({1, 4, 2, 28, 28, 8}, 7);
  call.fact("grid", "2x3x4").fact("text", "4@start");
  return call;
}

/// The mean of some rows' video part.
std::vector<double> mean_video(const ReferenceCall& call, int64_t batch, int64_t head,
                               const std::vector<int64_t>& rows, int64_t text) {
  std::vector<double> mean(static_cast<size_t>(call.shape().keys - text), 0.0);
  for (int64_t row : rows) {
    const auto weights = call.row(batch, head, row);
    for (size_t j = 0; j < mean.size(); ++j) {
      mean[j] += weights[j + static_cast<size_t>(text)] / static_cast<double>(rows.size());
    }
  }
  return mean;
}

}  // namespace

TEST_CASE("a text token's row is a volume, a word's the mean of its pieces' rows") {
  const TemporaryFolder folder;
  ReferenceCall call = joint_call();
  call.fact("tokens", R"(["▁a","▁dra","gon",""])");
  const std::string path = folder / "call.safetensors";
  call.write(path);
  const std::vector<std::pair<std::string, std::vector<int64_t>>> cases{
      {"0", {0}}, {"3", {3}}, {"dragon", {1, 2}}, {"1-2", {1, 2}}, {"A", {0}}};
  for (const auto& [word, rows] : cases) {
    const std::string out = folder / ("volume" + word + ".npy");
    const auto result = run_attnscope({"query", path, "--text-token", word, "-o", out, "--quiet"});
    INFO(word << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    const NpyArray volume = read_npy(out);
    REQUIRE(volume.shape == std::vector<int64_t>{4, 2, 3, 4});
    std::vector<double> expected;
    for (int64_t head = 0; head < 4; ++head) {
      const auto part = mean_video(call, 0, head, rows, 4);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    CHECK(worst_error(volume.values, expected, kFloor) < kTolerance);
  }
  const auto summary =
      run_attnscope({"query", path, "--text-token", "dragon", "--json", "--quiet"});
  const auto json = Json::parse(summary.out);
  CHECK(json["text_token"] == Json{"dragon"});
  CHECK(json["query"] == "text token dragon");
  CHECK(json["heads"][0]["text_tokens"] == Json{1, 2});
}

TEST_CASE("each batch item's word is looked up in its own prompt") {
  const TemporaryFolder folder;
  ReferenceCall call({2, 1, 1, 28, 28, 8}, 9);
  call.fact("grid", "2x3x4").fact("text", "4@start").fact("branches", R"(["uncond","cond"])");
  call.fact("tokens", R"([["▁a","▁red","▁dog"],["▁dog","","",""]])");
  const std::string path = folder / "call.safetensors";
  call.write(path);
  const std::string out = folder / "volume.npy";
  const auto result = run_attnscope({"query", path, "--text-token", "dog", "-o", out, "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<double> expected = mean_video(call, 0, 0, {2}, 4);
  const auto second = mean_video(call, 1, 0, {0}, 4);
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(worst_error(read_npy(out).values, expected, kFloor) < kTolerance);
  const auto missing = run_attnscope({"query", path, "--text-token", "red"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "batch item 1 (cond)"));
  CHECK(run_attnscope({"query", path, "--text-token", "red", "--branch", "uncond"}).exit_code == 0);
}

TEST_CASE("outputs of a mean say which tokens it is of") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  joint_call().fact("q_state", "final").write(path);
  const std::vector<std::string> query{"query",        path,        "--query",      "1,2,3",
                                       "--query",      "0,1:2,0:2", "--text-token", "3",
                                       "--text-token", "0-1"};
  auto arguments = query;
  arguments.insert(arguments.end(), {"--json", "-o", folder / "v.h5"});
  const auto result = run_attnscope(arguments);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.err, "note: text tokens (3) and patches (3) are averaged together"));
  const Json tokens{0, 1, 3, 8, 9, 27};
  const auto json = Json::parse(result.out);
  CHECK(json["tokens"] == tokens);
  CHECK_FALSE(json["heads"][0].contains("tokens"));
  CHECK(json["query"] == "mean of 6 queries (1,2,3; 0,1:2,0:2; text token 3; 1 more)");
  CHECK(read_dataset(folder / "v.h5", "tokens").values == std::vector<double>{0, 1, 3, 8, 9, 27});
  arguments = query;
  arguments.push_back("--quiet");
  CHECK(run_attnscope(arguments).err.empty());
  const auto patches = run_attnscope({"query", path, "--query", "0:2,0,0", "--json"});
  CHECK(patches.err.empty());
  CHECK(Json::parse(patches.out)["tokens"] == Json{4, 16});
  const auto rollout =
      run_attnscope({"rollout", path, "--query", "1,2,3", "--text-token", "2", "--json"});
  CHECK(contains(rollout.err, "text tokens (1) and patches (1)"));
  CHECK(Json::parse(rollout.out)["tokens"] == Json{2, 27});
}

TEST_CASE("where prompts differ each head says its tokens") {
  const TemporaryFolder folder;
  ReferenceCall call({2, 1, 1, 28, 28, 8}, 9);
  call.fact("grid", "2x3x4").fact("text", "4@start").fact("branches", R"(["uncond","cond"])");
  call.fact("tokens", R"([["▁a","▁dra","gon"],["▁dragon","","",""]])");
  const std::string path = folder / "call.safetensors";
  call.write(path);
  const std::vector<std::string> query{"query", path, "--text-token", "dragon", "--quiet"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), query.begin(), query.end());
    return run_attnscope(more);
  };
  const auto json = Json::parse(with({"--json", "-o", folder / "whole.h5"}).out);
  CHECK(json["tokens"].is_null());
  CHECK(json["heads"][0]["tokens"] == Json{1, 2});
  CHECK(json["heads"][1]["tokens"] == Json{0});
  const DatasetValues tokens = read_dataset(folder / "whole.h5", "tokens");
  CHECK(tokens.shape == std::vector<int64_t>{2, 2});
  CHECK(tokens.values == std::vector<double>{1, 2, 0, -1});
  for (const std::string part : {"0/2", "1/2"}) {
    REQUIRE(with({"-o", folder / "part{shard}.h5", "--shard", part}).exit_code == 0);
  }
  REQUIRE(run_attnscope({"merge", folder / "part0-of-2.h5", folder / "part1-of-2.h5", "-o",
                         folder / "merged.h5"})
              .exit_code == 0);
  CHECK(read_file(folder / "merged.h5") == read_file(folder / "whole.h5"));
}

TEST_CASE("text tokens of cross attention are no queries") {
  const TemporaryFolder folder;
  const std::string path = folder / "cross.safetensors";
  ReferenceCall({1, 1, 1, 24, 5, 8}, 3).fact("grid", "2x3x4").write(path);
  const auto result = run_attnscope({"query", path, "--text-token", "2"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "keys"));
}
