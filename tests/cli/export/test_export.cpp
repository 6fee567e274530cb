#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/memory_budget.h"
#include "core/problem/attention_problem.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"
#include "io/tensors/npy.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::vector<float> head_values(const HeadTensor& tensor, int64_t head) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
  tensor.read_rows(0, head, {0, tensor.tokens()}, bytes.data());
  std::vector<float> values(static_cast<size_t>(tensor.tokens() * tensor.width()));
  to_floats(tensor.dtype(), bytes.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

/// One row of the map in double, straight from the definition.
struct OracleRow {
  std::vector<double> logits, weights;
  double lse = 0;
};
OracleRow oracle_row(const AttentionProblem& p, int64_t head, int64_t row) {
  const auto q = head_values(p.q(), head);
  const auto k = head_values(p.k(), head);
  const int64_t d = p.head_dim();
  OracleRow r;
  double peak = -INFINITY;
  for (int64_t j = 0; j < p.num_keys(); ++j) {
    double dot = 0;
    for (int64_t c = 0; c < d; ++c) {
      dot += static_cast<double>(q[static_cast<size_t>(row * d + c)]) *
             k[static_cast<size_t>(j * d + c)];
    }
    r.logits.push_back(dot * p.scale(0));
    peak = std::max(peak, r.logits.back());
  }
  double sum = 0;
  for (double s : r.logits) sum += std::exp(s - peak);
  r.lse = peak + std::log(sum);
  for (double s : r.logits) r.weights.push_back(std::exp(s - r.lse));
  return r;
}

const std::string kCall = "/calls/step0010_layer002_cond_joint";

std::vector<std::string> export_sample(const std::string& out, std::vector<std::string> more) {
  std::vector<std::string> arguments{"export",   sample("moving-shapes"),
                                     "-o",       out,
                                     "--steps",  "10",
                                     "--layers", "2",
                                     "--heads",  "1,3",
                                     "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("exported weights are those of the definition, in every dtype") {
  const Capture capture = Capture::open(sample("moving-shapes"));
  const AttentionProblem* problem = nullptr;
  for (const CallEntry& call : capture.calls()) {
    if (call.id.step == 10 && call.id.layer == 2) problem = call.problem.get();
  }
  REQUIRE(problem != nullptr);
  const TemporaryFolder folder;
  struct Case {
    std::string dtype;
    double relative;
    double absolute;
  };
  // f16 × 2¹⁴ rounds to 2⁻¹¹ relative and 2⁻³⁹ absolute; the log code steps by 2^(24/254).
  for (const Case& c : {Case{"f32", 1e-4, 1e-3 / 1024}, Case{"f16", 6e-4, 1e-3 / 1024},
                        Case{"u8", 0.034, 0x1p-24}}) {
    INFO(c.dtype);
    const std::string out = folder / (c.dtype + ".h5");
    const auto result = run_attnscope(export_sample(out, {"--dtype", c.dtype}));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.err.empty());
    CHECK(result.out.empty());
    const auto weights = read_dataset(out, kCall + "/weights");
    const auto lse = read_dataset(out, kCall + "/lse");
    REQUIRE(weights.shape == std::vector<int64_t>{1, 2, 1024, 1024});
    REQUIRE(lse.shape == std::vector<int64_t>{1, 2, 1024});
    CHECK(read_dataset(out, "/complete").values == std::vector<double>{1});
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t row : {0, 15, 16, 511, 700, 1023}) {
        const OracleRow oracle = oracle_row(*problem, h == 0 ? 1 : 3, row);
        double worst = 0;
        for (int64_t j = 0; j < 1024; ++j) {
          const double expected = oracle.weights[static_cast<size_t>(j)];
          const double got = weights.values[static_cast<size_t>((h * 1024 + row) * 1024 + j)];
          worst = std::max(worst, std::abs(got - expected) / (c.absolute + c.relative * expected));
        }
        INFO("head " << h << " row " << row);
        CHECK(worst <= 1);
        CHECK(std::abs(lse.values[static_cast<size_t>(h * 1024 + row)] - oracle.lse) <=
              2e-5 + 2e-6 * std::abs(oracle.lse));
      }
    }
  }
}

TEST_CASE("the map agrees with an independent implementation's") {
  const TemporaryFolder folder;
  const std::string out = folder / "minilm.h5";
  const auto result = run_attnscope(
      {"export", test_data("minilm/layer00.safetensors"), "-o", out, "--dtype", "f32", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto calls = group_members(out, "/calls");
  REQUIRE(calls.size() == 1);
  const auto weights = read_dataset(out, "/calls/" + calls.front() + "/weights");
  const auto oracle = open_npy(test_data("minilm/oracle_layer0.npy"))->tensor("");
  REQUIRE(weights.shape == std::vector<int64_t>{1, 12, 194, 194});
  std::vector<float> expected(weights.values.size());
  const std::vector<int64_t> begin(4, 0);
  oracle->read(begin, oracle->shape(), reinterpret_cast<std::byte*>(expected.data()));
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(weights.values[i] - expected[i]));
  }
  // PyTorch computed it in float32 from the same tensors; agreement in double is 3.9e-6.
  CHECK(worst < 2e-5);
}

TEST_CASE("logits, LSE, rows and crops hold what they say") {
  const Capture capture = Capture::open(sample("moving-shapes"));
  const AttentionProblem* problem = nullptr;
  for (const CallEntry& call : capture.calls()) {
    if (call.id.step == 10 && call.id.layer == 2) problem = call.problem.get();
  }
  REQUIRE(problem != nullptr);
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const int64_t row = 16 + 3 * 144 + 8 * 12 + 7;
  const OracleRow oracle = oracle_row(*problem, 1, row);

  SECTION("logits, not scaled") {
    REQUIRE(run_attnscope(export_sample(out, {"--product", "logits", "--scale", "1"})).exit_code ==
            0);
    const auto logits = read_dataset(out, kCall + "/logits");
    for (int64_t j = 0; j < 1024; ++j) {
      CHECK(logits.values[static_cast<size_t>(row * 1024 + j)] ==
            Approx(8 * oracle.logits[static_cast<size_t>(j)]).epsilon(1e-5).margin(1e-4));
    }
  }
  SECTION("LSE alone") {
    REQUIRE(run_attnscope(export_sample(out, {"--product", "lse"})).exit_code == 0);
    const auto members = group_members(out, kCall);
    CHECK(std::find(members.begin(), members.end(), "weights") == members.end());
    CHECK(read_dataset(out, kCall + "/lse").values[static_cast<size_t>(row)] ==
          Approx(oracle.lse).margin(1e-4));
  }
  SECTION("chosen rows") {
    REQUIRE(
        run_attnscope(export_sample(out, {"--query", "3,8,7", "--index", "0", "--dtype", "f32"}))
            .exit_code == 0);
    const auto weights = read_dataset(out, kCall + "/weights");
    REQUIRE(weights.shape == std::vector<int64_t>{1, 2, 2, 1024});
    CHECK(read_dataset(out, kCall + "/query").values ==
          std::vector<double>{0, static_cast<double>(row)});
    for (int64_t j = 0; j < 1024; ++j) {
      CHECK(weights.values[static_cast<size_t>(1024 + j)] ==
            Approx(oracle.weights[static_cast<size_t>(j)]).epsilon(1e-4).margin(1e-6));
    }
  }
  SECTION("a crop keeps the softmax over all keys") {
    REQUIRE(
        run_attnscope(export_sample(out, {"--rows", "550:552", "--cols", ":16", "--dtype", "f32"}))
            .exit_code == 0);
    const auto weights = read_dataset(out, kCall + "/weights");
    REQUIRE(weights.shape == std::vector<int64_t>{1, 2, 2, 16});
    for (int64_t j = 0; j < 16; ++j) {
      CHECK(weights.values[static_cast<size_t>((row - 550) * 16 + j)] ==
            Approx(oracle.weights[static_cast<size_t>(j)]).epsilon(1e-4).margin(1e-6));
    }
  }
  SECTION("a causal mask") {
    REQUIRE(run_attnscope(export_sample(out, {"--mask", "causal", "--dtype", "f32"})).exit_code ==
            0);
    const auto weights = read_dataset(out, kCall + "/weights");
    double sum = 0;
    for (int64_t j = 0; j < 1024; ++j) {
      const double w = weights.values[static_cast<size_t>(row * 1024 + j)];
      if (j > row) CHECK(w == 0);
      sum += w;
    }
    CHECK(sum == Approx(1).margin(1e-5));
  }
}

TEST_CASE("the same input and options give the same bytes, however they were computed") {
  const TemporaryFolder folder;
  const std::string first = folder / "first.h5";
  REQUIRE(run_attnscope(export_sample(first, {"--memory", "1GiB"})).exit_code == 0);
  const std::string bytes = read_file(first);
  REQUIRE(bytes.size() > 4'000'000);
  int n = 0;
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--memory", "3MiB"},
                                              {"--threads", "1"},
                                              {"--no-sync"},
                                              {"--threads", "3", "--memory", "64MiB"}}) {
    const std::string out = folder / ("again" + std::to_string(n++) + ".h5");
    const auto result = run_attnscope(export_sample(out, how));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(read_file(out) == bytes);
  }
}

TEST_CASE("an existing file is replaced only on request, and never by a broken run") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  REQUIRE(run_attnscope(export_sample(out, {})).exit_code == 0);
  const std::string bytes = read_file(out);

  const auto refused = run_attnscope(export_sample(out, {"--product", "lse"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("--force") != std::string::npos);
  CHECK(read_file(out) == bytes);

  ProgramSettings full;
  full.max_file_bytes = 1 << 20;
  const auto broken = run_attnscope(export_sample(out, {"--force", "--dtype", "f32"}), full);
  CHECK(broken.exit_code == 1);
  CHECK(broken.err.find(out) != std::string::npos);
  CHECK(read_file(out) == bytes);
  CHECK_FALSE(std::filesystem::exists(out + ".part"));

  REQUIRE(run_attnscope(export_sample(out, {"--force", "--product", "lse"})).exit_code == 0);
  CHECK(read_file(out) != bytes);
}

TEST_CASE("a dry run tells sizes and writes nothing") {
  const TemporaryFolder folder;
  const auto result = run_attnscope(export_sample(folder / "out.h5", {"--dry-run", "--json"}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.find("\"payload_bytes\":" + std::to_string(2 * 1024 * (1024 * 2 + 4))) !=
        std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a file larger than --max-size is refused before anything is written") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.h5";
  const auto size_of = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--dry-run", "--json"});
    const auto plan = Json::parse(run_attnscope(export_sample(out, options)).out);
    return plan.value("file_bytes", plan["payload_bytes"].get<int64_t>());
  };
  const auto refusal = [&](std::vector<std::string> options, int64_t limit) {
    options.insert(options.end(), {"--max-size", std::to_string(limit) + "B"});
    const auto result = run_attnscope(export_sample(out, options));
    CHECK(result.exit_code == 1);
    CHECK(std::filesystem::is_empty(folder.path()));
    return result.err;
  };
  const int64_t f16 = size_of({}), u8 = size_of({"--dtype", "u8"});
  REQUIRE(u8 < f16);
  CHECK(contains(refusal({}, f16 - 1), "--dtype u8 takes " + format_bytes(u8)));
  CHECK(contains(refusal({"--dry-run"}, f16 - 1), out + " takes " + format_bytes(f16)));
  CHECK(contains(refusal({"--dtype", "f32"}, f16), "--dtype f16 takes " + format_bytes(f16)));
  CHECK(contains(refusal({}, u8 - 1), ", too; take fewer heads"));
  CHECK(contains(refusal({"--threshold", "0.01"}, 4096), " takes up to "));
  const int64_t lse = size_of({"--product", "lse"}), pooled = size_of({"--block", "64"});
  CHECK(contains(refusal({"--product", "lse"}, lse - 1), "; take fewer heads, --rows or --cols"));
  CHECK(contains(refusal({"--block", "64"}, pooled - 1), "takes " + format_bytes(pooled)));
  for (const char* wrong : {"50%", "5", "many", "0B"}) {
    const auto result = run_attnscope(export_sample(out, {"--max-size", wrong}));
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "--max-size " + std::string(wrong)));
    // No share is advised, which is refused.
    CHECK(contains(result.err.substr(result.err.rfind(wrong) + 3), "%") == false);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto fits = run_attnscope(export_sample(out, {"--max-size", std::to_string(f16) + "B"}));
  INFO(fits.err);
  REQUIRE(fits.exit_code == 0);
  const auto written = static_cast<int64_t>(std::filesystem::file_size(out));
  CHECK(written <= f16);
}

TEST_CASE("what an export has written is told as JSON, also of one that was complete") {
  const TemporaryFolder folder;
  for (const bool pooled : {false, true}) {
    const std::string out = folder / (pooled ? "blocks.h5" : "maps.h5");
    std::vector<std::string> arguments{
        "export", sample("moving-shapes"), "--layers", "1", "--json", "--resume", "-o", out};
    if (pooled) arguments.insert(arguments.end(), {"--block", "64"});
    for (const bool again : {false, true}) {
      const auto result = run_attnscope(arguments);
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      const auto json = Json::parse(result.out);
      CHECK(json["format"] == "attnscope-export-result/1");
      CHECK(json["out"] == out);
      CHECK(json["heads"] == 4);
      CHECK((json["bytes_written"] > 0) == !again);
      CHECK((json["seconds"] > 0) == !again);
      CHECK(json.contains("tiles") == !pooled);
      if (!pooled) CHECK(json["tiles_kept"] == (again ? json["tiles"] : Json(0)));
      CHECK((result.err.find("is complete already") != std::string::npos) == again);
    }
  }
}
