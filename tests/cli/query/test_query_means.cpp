#include <limits>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/cli/query/query_reference.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr double kTolerance = 2e-4;

}  // namespace

TEST_CASE("weights are multiplied by the norms of the values on request") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  const ReferenceCall call = joint_call("start", 18);
  call.write(path);
  for (const std::string domain : {"all", "video", "frame"}) {
    const auto reversed = query_npy(
        {path, "--reverse", "--query", "1,2,3", "--weighting", "value", "--domain", domain},
        folder);
    CHECK(worst_error(reversed, columns(call, {{37, 1.0}}, domain, 4, 60, true), 1e-3 / 64) <
          kTolerance);
  }
  const auto rows = query_npy({path, "--query", "1,2,3", "--weighting", "value"}, folder);
  std::vector<double> expected;
  for (int64_t head = 0; head < 4; ++head) {
    const auto row = call.row(0, head, 37);
    for (int64_t j = 4; j < 64; ++j) {
      expected.push_back(row[static_cast<size_t>(j)] * call.value_norm(0, head, j));
    }
  }
  CHECK(worst_error(rows, expected, 1e-3 / 64) < kTolerance);
  REQUIRE(run_attnscope({"query", path, "--query", "1,2,3", "--weighting", "value", "--quiet", "-o",
                         folder / "weighed.h5"})
              .exit_code == 0);
  CHECK(read_text_attribute(folder / "weighed.h5", "weighting") == "value");
  const auto text = run_attnscope({"query", path, "--query", "1,2,3", "--weighting", "value"});
  CHECK(contains(text.out, "weighting value"));
  for (const std::string weighting : {"none", "value"}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"query", path}, {"render", path, "--picture", "filmstrip"}}) {
      std::vector<std::string> line = command;
      for (const std::string& word :
           {std::string("--query"), std::string("1,2,3"), std::string("--weighting"), weighting,
            std::string("--quiet"), std::string("--force"), std::string("-o"),
            std::string(folder / "w.svg")}) {
        line.push_back(word);
      }
      REQUIRE(run_attnscope(line).exit_code == 0);
      const std::string picture = read_file(folder / "w.svg");
      CHECK(contains(picture, "weight × ‖v‖") == (weighting == "value"));
      CHECK(contains(picture, "weights times ‖v‖") == (weighting == "value"));
    }
  }
  ReferenceCall({1, 1, 1, 60, 60, 8}, 19, false).fact("grid", "3x4x5").write(path);
  const auto missing = run_attnscope({"query", path, "--query", "0,0,0", "--weighting", "value"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "call.safetensors has no v"));
  CHECK(run_attnscope({"query", path, "--query", "0,0,0", "--weighting", "values"}).exit_code == 2);
}

TEST_CASE("a NaN among the values is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall call({1, 1, 1, 60, 60, 8}, 19, false);
  std::vector<float> v(60 * 8, 1.0f);
  v[7 * 8 + 3] = std::numeric_limits<float>::quiet_NaN();
  call.tensor("v", "F32", {1, 1, 60, 8}, raw(v)).fact("grid", "3x4x5").write(path);
  const auto result =
      run_attnscope({"query", path, "--query", "0,0,0", "--weighting", "value", "--quiet"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "nan"));
  CHECK(contains(result.err, "token 7, channel 3"));
}

TEST_CASE(
    "the first NaN of q and k in the order of the heads is named, however few rows are asked for") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  // Pieces for several threads, where K is met as it is stored.
  constexpr int64_t kTokens = 32 * 16 * 32, kWidth = 8;
  const auto at = [](int64_t head, int64_t token, int64_t channel) {
    return static_cast<size_t>((head * kTokens + token) * kWidth + channel);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto write = [&](bool bad_q, bool bad_k, int64_t bad_token = 0) {
    std::vector<float> q(at(4, 0, 0), 0.5f), k(at(4, 0, 0), 0.25f);
    // Heads 2 of q, 1 and 3 of k.
    if (bad_q) q[at(2, bad_token, 1)] = nan;
    for (const int64_t head : {1, 3}) {
      if (bad_k) k[at(head, 50, 6)] = nan;
    }
    CallFile()
        .tensor("q", "F32", {1, 4, kTokens, kWidth}, raw(q))
        .tensor("k", "F32", {1, 4, kTokens, kWidth}, raw(k))
        .fact("grid", "32x16x32")
        .write(path);
    return run_attnscope({"query", path, "--query", "0,0,0", "--quiet"});
  };
  CHECK(write(false, false).exit_code == 0);
  for (const bool bad_q : {false, true}) {
    const auto refused = write(bad_q, true);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, "tensor k: batch 0, head 1, token 50, channel 6 is NaN"));
    CHECK(refused.out.empty());
  }
  const auto refused = write(true, false);
  CHECK(contains(refused.err, "tensor q: batch 0, head 2, token 0, channel 1 is NaN"));
  // Of q, no other row is needed.
  CHECK(write(true, false, 40).exit_code == 0);
}

TEST_CASE("volumes are averaged over heads, layers and steps") {
  const TemporaryFolder folder;
  std::vector<std::vector<double>> heads;  // of (step, layer)
  for (int64_t step = 0; step < 2; ++step) {
    for (int64_t layer = 0; layer < 2; ++layer) {
      ReferenceCall call = joint_call("start", 20 + static_cast<uint64_t>(2 * step + layer));
      call.fact("step", std::to_string(step)).fact("layer", std::to_string(layer));
      call.write(folder.path() / ("c" + std::to_string(2 * step + layer) + ".safetensors"));
      const auto values = columns(call, {{37, 1.0}}, "all", 4, 60);
      for (size_t h = 0; h < 4; ++h) {
        heads.emplace_back(values.begin() + static_cast<int64_t>(h * 60),
                           values.begin() + static_cast<int64_t>(h * 60 + 60));
      }
    }
  }
  const auto mean_of = [&](const std::vector<std::vector<size_t>>& groups) {
    std::vector<double> values;
    for (const auto& group : groups) {
      for (size_t i = 0; i < 60; ++i) {
        double sum = 0;
        for (size_t member : group) sum += heads[member][i];
        values.push_back(sum / static_cast<double>(group.size()));
      }
    }
    return values;
  };
  std::vector<size_t> everything;
  for (size_t i = 0; i < 16; ++i) everything.push_back(i);
  const std::vector<std::pair<std::string, std::vector<std::vector<size_t>>>> cases{
      {"heads", {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}},
      {"steps,layers", {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}},
      {"all", {everything}}};
  const std::string capture = folder.path().string();
  const TemporaryFolder out;
  for (const auto& [axes, groups] : cases) {
    INFO(axes);
    const auto values = query_npy({capture, "--reverse", "--query", "1,2,3", "--mean", axes}, out);
    CHECK(worst_error(values, mean_of(groups), 1e-3 / 64) < kTolerance);
  }
  const auto result = run_attnscope({"query", capture, "--query", "1,2,3", "--mean", "heads",
                                     "--mean", "layers", "--json", "--quiet"});
  const auto json = Json::parse(result.out);
  CHECK(json["mean"] == "heads, layers");
  REQUIRE(json["heads"].size() == 2);
  CHECK(json["heads"][1]["step"] == 1);
  CHECK(json["heads"][1]["layer"].is_null());
  CHECK(json["heads"][1]["averaged"] == 8);
  CHECK(run_attnscope({"query", capture, "--query", "1,2,3", "--mean", "head"}).exit_code == 2);
  REQUIRE(run_attnscope({"query", capture, "--query", "1,2,3", "--mean", "all", "--quiet", "-o",
                         out / "mean.h5"})
              .exit_code == 0);
  CHECK(read_text_attribute(out / "mean.h5", "mean") == "heads, layers, steps");
  CHECK(read_text_attribute(out / "mean.h5", "weighting") == "none");
  CHECK(read_dataset(out / "mean.h5", "/averaged").values == std::vector<double>{16});
  CHECK(read_dataset(out / "mean.h5", "/head").values == std::vector<double>{-1});
}

TEST_CASE("batch items average apart and keep their own words") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  ReferenceCall call({2, 2, 1, 28, 28, 8}, 9);
  call.fact("grid", "2x3x4").fact("text", "4@start").fact("branches", R"(["uncond","cond"])");
  call.fact("tokens", R"([["▁a","▁red","▁dog"],["▁dog","","",""]])");
  call.write(path);
  const auto values =
      query_npy({path, "--reverse", "--text-token", "dog", "--mean", "all"}, folder);
  std::vector<double> expected;
  for (int64_t batch = 0; batch < 2; ++batch) {
    const size_t key = batch == 0 ? 2 : 0;
    for (int64_t i = 4; i < 28; ++i) {
      expected.push_back((call.row(batch, 0, i)[key] + call.row(batch, 1, i)[key]) / 2);
    }
  }
  CHECK(worst_error(values, expected, 1e-3 / 28) < kTolerance);
}
