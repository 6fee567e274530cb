// `export --product output`: attention outputs, from a capture to the file.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <vector>

#include "core/base/dtype.h"
#include "io/capture/capture.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kCall = "/calls/step0000_layer000_all_self";
constexpr int64_t kMiB = 1 << 20;

ProgramResult export_output(const std::string& capture, const std::string& out,
                            const std::vector<std::string>& more = {},
                            const ProgramSettings& settings = {}) {
  std::vector<std::string> arguments{"export", capture, "-o", out, "--product", "output"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments, settings);
}

/// Σ P·V and Σ P·|V| of a head, [tokens, d].
struct Expected {
  std::vector<double> outputs, magnitudes;
};
Expected expected_outputs(const AttentionCapture& capture, const std::vector<double>& weights,
                          int64_t head) {
  Expected expected;
  for (int64_t i = 0; i < capture.tokens; ++i) {
    for (int64_t c = 0; c < capture.d; ++c) {
      double sum = 0, magnitude = 0;
      for (int64_t j = 0; j < capture.tokens; ++j) {
        const double weight = weights[static_cast<size_t>(i * capture.tokens + j)];
        sum += weight * capture.value(head, j, c);
        magnitude += weight * std::fabs(capture.value(head, j, c));
      }
      expected.outputs.push_back(sum);
      expected.magnitudes.push_back(magnitude);
    }
  }
  return expected;
}

}  // namespace

TEST_CASE("outputs are those of the definition, under grouped queries and a mask") {
  const TemporaryFolder folder;
  AttentionCapture capture(7, 700);
  capture.allowed.assign(700 * 700, 1);
  for (size_t i = 0; i < capture.allowed.size(); ++i) {
    const size_t row = i / 700, key = i % 700;
    if (row == 3 || (row + key) % 3 == 0) capture.allowed[i] = 0;
  }
  capture.file().write(folder / "call.safetensors");
  const std::string out = folder / "out.h5";
  const auto result =
      export_output(folder / "call.safetensors", out, {"--heads", "1-3", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const DatasetValues outputs = read_dataset(out, kCall + "/output");
  const DatasetValues lse = read_dataset(out, kCall + "/lse");
  REQUIRE(outputs.shape == std::vector<int64_t>{1, 3, 700, 8});
  REQUIRE(lse.shape == std::vector<int64_t>{1, 3, 700});
  for (int64_t h = 0; h < 3; ++h) {
    const Expected expected = expected_outputs(capture, capture.weights(h + 1), h + 1);
    double worst = 0;
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      const double got = outputs.values[static_cast<size_t>(h) * expected.outputs.size() + i];
      worst = std::max(worst, std::fabs(got - expected.outputs[i]) - 1e-5 * expected.magnitudes[i]);
    }
    INFO("head " << h + 1);
    CHECK(worst <= 0);
    CHECK(lse.values[static_cast<size_t>(h * 700 + 3)] == -std::numeric_limits<double>::infinity());
    for (int64_t c = 0; c < 8; ++c) {
      CHECK(outputs.values[static_cast<size_t>((h * 700 + 3) * 8 + c)] == 0);
    }
  }
}

TEST_CASE("a mask of huge negative biases leaves every row a whole one") {
  constexpr int64_t kTokens = 530;
  const TemporaryFolder folder;
  AttentionCapture capture(11, kTokens);
  // Rows keep their last keys alone, or every other one.
  for (int64_t i = 0; i < kTokens; ++i) {
    for (int64_t j = 0; j < kTokens; ++j) {
      const bool kept = i % 2 == 0 ? j >= kTokens - 9 : (i + j) % 2 == 0;
      capture.allowed.push_back(kept ? 1 : 0);
    }
  }
  const std::vector<double> expected = capture.weights(2);
  for (const float bias : {-65504.0f, -1e30f, std::numeric_limits<float>::lowest()}) {
    capture.masked_bias = bias;
    capture.file().write(folder / "call.safetensors");
    INFO("bias " << bias);
    const auto result =
        run_attnscope({"export", folder / "call.safetensors", "-o", folder / "map.h5", "--heads",
                       "2", "--dtype", "f32", "--quiet", "--force"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const DatasetValues weights = read_dataset(folder / "map.h5", kCall + "/weights");
    REQUIRE(weights.shape == std::vector<int64_t>{1, 1, kTokens, kTokens});
    double worst = 0, worst_sum = 0;
    for (int64_t i = 0; i < kTokens; ++i) {
      double sum = 0;
      for (auto at = static_cast<size_t>(i * kTokens); at < static_cast<size_t>((i + 1) * kTokens);
           ++at) {
        sum += weights.values[at];
        worst = std::max(worst, std::fabs(weights.values[at] - expected[at]));
      }
      worst_sum = std::max(worst_sum, std::fabs(sum - 1));
    }
    CHECK(worst <= 1e-5);
    CHECK(worst_sum <= 1e-5);
  }
}

TEST_CASE("the identity as V gives the map") {
  const TemporaryFolder folder;
  AttentionCapture capture(9, 320);
  std::vector<float> identity(static_cast<size_t>(capture.kv_heads * 320 * 320));
  for (int64_t h = 0; h < capture.kv_heads; ++h) {
    for (int64_t j = 0; j < 320; ++j) {
      identity[static_cast<size_t>((h * 320 + j) * 320 + j)] = 1;
    }
  }
  CallFile file;
  file.tensor("q", "F32", {1, 4, 320, 8}, raw(capture.q))
      .tensor("k", "F32", {1, 2, 320, 8}, raw(capture.k))
      .tensor("v", "F32", {1, 2, 320, 320}, raw(identity));
  file.write(folder / "call.safetensors");
  for (const std::vector<std::string>& how : {std::vector<std::string>{},
                                              {"--mask", "causal"},
                                              {"--mask", "window:20"},
                                              {"--score", "sigmoid"},
                                              {"--score", "linear:elu1"},
                                              {"--backend", "reference"}}) {
    INFO((how.empty() ? "plain" : how[1]));
    std::vector<std::string> weights{"export",    folder / "call.safetensors",
                                     "-o",        folder / "map.h5",
                                     "--product", "weights",
                                     "--dtype",   "f32",
                                     "--quiet",   "--force"};
    weights.insert(weights.end(), how.begin(), how.end());
    REQUIRE(run_attnscope(weights).exit_code == 0);
    std::vector<std::string> more{"--quiet", "--force"};
    more.insert(more.end(), how.begin(), how.end());
    const auto result = export_output(folder / "call.safetensors", folder / "out.h5", more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const auto map = read_dataset(folder / "map.h5", kCall + "/weights").values;
    const auto outputs = read_dataset(folder / "out.h5", kCall + "/output").values;
    REQUIRE(map.size() == outputs.size());
    double worst = 0, total = 0;
    for (size_t i = 0; i < map.size(); ++i) {
      worst = std::max(worst, std::fabs(map[i] - outputs[i]) - 0x1p-22 * map[i]);
      total += map[i];
    }
    CHECK(worst <= 1e-30);
    CHECK(total > 1000);
    const auto members = group_members(folder / "out.h5", kCall);
    CHECK((std::count(members.begin(), members.end(), "lse") == 1) ==
          (how.empty() || how[1] != "sigmoid"));
  }
}

TEST_CASE("outputs agree with those that a capture recorded, as far as bf16 allows") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const auto result = export_output(sample("moving-shapes"), out, {"--layers", "2", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto got = read_dataset(out, "/calls/step0010_layer002_cond_joint/output");
  REQUIRE(got.shape == std::vector<int64_t>{1, 4, 1024, 64});
  const Capture capture = Capture::open(sample("moving-shapes"));
  const CallEntry* call = nullptr;
  for (const CallEntry& entry : capture.calls()) {
    if (entry.id.layer == 2) call = &entry;
  }
  REQUIRE(call != nullptr);
  REQUIRE(call->out);
  REQUIRE(call->out_rows->shape().size() == 1);
  const int64_t count = call->out_rows->shape()[0];
  std::vector<int64_t> rows(static_cast<size_t>(count));
  call->out_rows->read(std::vector<int64_t>{0}, std::vector<int64_t>{count},
                       reinterpret_cast<std::byte*>(rows.data()));
  std::vector<uint16_t> stored(static_cast<size_t>(4 * count * 64));
  REQUIRE(call->out->dtype() == DType::bf16);
  call->out->read(std::vector<int64_t>{0, 0, 0, 0}, std::vector<int64_t>{1, 4, count, 64},
                  reinterpret_cast<std::byte*>(stored.data()));
  double worst = 0, largest = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto head = static_cast<int64_t>(i) / (count * 64);
    const int64_t row = rows[i / 64 % static_cast<size_t>(count)];
    const double value = got.values[static_cast<size_t>((head * 1024 + row) * 64) + i % 64];
    const auto there = static_cast<double>(to_float(bf16{stored[i]}));
    worst = std::max(worst, std::fabs(value - there));
    largest = std::max(largest, std::fabs(there));
  }
  CHECK(largest > 0.5);
  CHECK(worst <= 0.004 * largest);
}

TEST_CASE("outputs have the same bytes however they were computed") {
  const TemporaryFolder folder;
  const auto bytes_with = [&](const std::vector<std::string>& how) {
    const std::string out = folder / "out.h5";
    std::vector<std::string> more{"--quiet", "--force", "--layers", "1", "--rows", "5:1000"};
    more.insert(more.end(), how.begin(), how.end());
    const auto result = export_output(sample("moving-shapes"), out, more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(run_attnscope({"verify", out}).exit_code == 0);
    return read_file(out);
  };
  const std::string first = bytes_with({"--memory", "1GiB"});
  REQUIRE(first.size() > 4 * 995 * 64 * 4);
  CHECK(bytes_with({"--memory", "5MiB"}) == first);
  CHECK(bytes_with({"--threads", "1"}) == first);
  CHECK(bytes_with({"--threads", "3", "--no-sync"}) == first);
}

TEST_CASE("a killed or interrupted export of outputs goes on where it was") {
  const TemporaryFolder folder;
  const AttentionCapture capture(21, 900);
  const std::string input = folder / "call.safetensors";
  capture.file().write(input);
  const std::string whole = folder / "whole.h5", out = folder / "out.h5";
  REQUIRE(export_output(input, whole, {"--quiet"}).exit_code == 0);
  for (const std::string how : {"stop-write", "kill-write"}) {
    INFO(how);
    std::filesystem::remove(out);
    // In the midst of the tiles.
    const long writes = calls_of(
        {"export", input, "-o", folder / "counted.h5", "--product", "output", "--force"}, how);
    const auto stopped =
        export_output(input, out, {"--threads", "1"}, with_fault(how, writes * 3 / 4));
    INFO(stopped.err);
    REQUIRE(stopped.exit_code == (how == "stop-write" ? 4 : 128 + SIGKILL));
    const auto info = run_attnscope({"info", out + ".part"});
    CHECK(info.exit_code == 0);
    CHECK(info.out.find("incomplete: ") != std::string::npos);
    CHECK(info.out.find("output [1, 4, 900, 8]") != std::string::npos);
    CHECK(run_attnscope({"verify", out + ".part"}).exit_code == 3);
    const auto resumed = export_output(input, out, {"--resume"});
    INFO(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    CHECK((how == "kill-write" || resumed.err.find("resuming ") != std::string::npos));
    CHECK(read_file(out) == read_file(whole));
    const auto again = export_output(input, out, {"--resume"});
    CHECK(again.exit_code == 0);
    CHECK(again.err.find("complete already") != std::string::npos);
  }
}

TEST_CASE("V counts in the capture's hash") {
  const TemporaryFolder folder;
  AttentionCapture capture(3, 50);
  capture.file().write(folder / "call.safetensors");
  REQUIRE(export_output(folder / "call.safetensors", folder / "out.h5", {"--quiet"}).exit_code ==
          0);
  capture.v[17] += 1;
  capture.file().write(folder / "call.safetensors");
  const auto other =
      export_output(folder / "call.safetensors", folder / "out.h5", {"--quiet", "--resume"});
  CHECK(other.exit_code == 1);
  CHECK(other.err.find("capture_hash") != std::string::npos);
}

TEST_CASE("what outputs cannot be made of is refused") {
  const TemporaryFolder folder;
  AttentionCapture capture(3, 50);
  CallFile without;
  without.tensor("q", "F32", {1, 4, 50, 8}, raw(capture.q))
      .tensor("k", "F32", {1, 2, 50, 8}, raw(capture.k));
  without.write(folder / "without.safetensors");
  capture.file().write(folder / "call.safetensors");
  capture.v[static_cast<size_t>((1 * 50 + 20) * 8 + 5)] = std::numeric_limits<float>::quiet_NaN();
  capture.file().write(folder / "nan.safetensors");
  struct Case {
    std::string file;
    std::vector<std::string> more;
    int code;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases{
      {"without", {}, 2, {"without.safetensors", "--v FILE[:KEY]"}},
      {"call", {"--cols", "0:10"}, 2, {"--cols does not apply to --product output"}},
      {"call", {"--dtype", "f16"}, 2, {"--dtype f16", "f32"}},
      {"call", {"--compress", "gzip"}, 2, {"--compress gzip"}},
      {"call", {"--topk", "3"}, 2, {"--topk 3"}},
      {"call", {"--threshold", "0.1"}, 2, {"--threshold"}},
      {"call", {"--block", "4"}, 2, {"--block belongs to --product pooled"}},
      {"call", {"--pyramid"}, 2, {"--pyramid belongs to --product pooled"}},
      {"call", {"--index", "4"}, 2, {"--product rows"}},
      {"nan", {}, 1, {"v: batch 0, head 1, token 20, channel 5 is NaN"}}};
  for (const Case& c : cases) {
    const auto result =
        export_output(folder / (c.file + ".safetensors"), folder / "out.h5", c.more);
    INFO(c.file << ": " << result.err);
    CHECK(result.exit_code == c.code);
    for (const std::string& word : c.words) CHECK(result.err.find(word) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "out.h5.part"));
  }
  // A NaN in a head of V that no selected head uses harms nothing.
  CHECK(export_output(folder / "nan.safetensors", folder / "out.h5", {"--heads", "0,1", "--quiet"})
            .exit_code == 0);
}

TEST_CASE("a dry run of outputs tells sizes and writes nothing") {
  const TemporaryFolder folder;
  const auto result = export_output(sample("moving-shapes"), folder / "out.h5",
                                    {"--layers", "0", "--dry-run", "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("\"payload_bytes\":" + std::to_string(4 * 1024 * (64 * 4 + 4))) !=
        std::string::npos);
  CHECK(result.out.find("\"flops\":" + std::to_string(4 * 1024 * 1024 * int64_t{256})) !=
        std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("outputs stay within --memory + 64 MiB") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  const TemporaryFolder folder;
  const std::string head = folder / "head.safetensors";
  struct Case {
    int64_t tokens, d;
    std::string rows;
    int64_t budget_mib;
  };
  for (const Case& c : {Case{17776, 64, "0:3072", 32}, Case{119056, 128, "0:768", 128}}) {
    write_synthetic_head(head, c.tokens, c.d);
    const auto result =
        run_attnscope({"export", "--q", head + ":q", "--k", head + ":k", "--v", head + ":k", "-o",
                       folder / "out.h5", "--product", "output", "--rows", c.rows, "--quiet",
                       "--force", "--no-sync", "--memory", std::to_string(c.budget_mib) + "MiB"});
    INFO("S = " << c.tokens << ", peak " << result.peak_bytes / kMiB << " MiB\n" << result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.peak_bytes <= (c.budget_mib + 64) * kMiB);
  }
}
