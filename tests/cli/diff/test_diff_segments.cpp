// attnscope diff of captures of different tokens: segment by segment, or refused.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A video of 2 x 5 x 8 after some text.
ReferenceCall call_with(int64_t text, uint64_t seed, const std::string& grid = "2x5x8",
                        const std::string& layer = "2") {
  const int64_t tokens = text + 80;
  return ReferenceCall({1, 1, 1, tokens, tokens, 16}, seed)
      .fact("step", "4")
      .fact("layer", layer)
      .fact("grid", grid)
      .fact("text", std::to_string(text) + "@start");
}

/// The expected numbers of video → video, of rows divided by their sums over the video.
struct VideoNumbers {
  double mean_abs = 0, js = 0, variation = 0, cosine = 0, entropy = 0, mass_a = 0, mass_b = 0;
};

VideoNumbers video_numbers(const ReferenceCall& a, int64_t text_a, const ReferenceCall& b,
                           int64_t text_b) {
  VideoNumbers n;
  for (int64_t i = 0; i < 80; ++i) {
    const auto p = a.row(0, 0, text_a + i), q = b.row(0, 0, text_b + i);
    double mass_a = 0, mass_b = 0, pq = 0, pp = 0, qq = 0;
    for (int64_t j = 0; j < 80; ++j) {
      mass_a += p[static_cast<size_t>(text_a + j)];
      mass_b += q[static_cast<size_t>(text_b + j)];
    }
    for (int64_t j = 0; j < 80; ++j) {
      const double x = p[static_cast<size_t>(text_a + j)] / mass_a;
      const double y = q[static_cast<size_t>(text_b + j)] / mass_b, m = (x + y) / 2;
      n.mean_abs += std::abs(x - y) / 6400;
      n.variation += std::abs(x - y) / 160;
      n.js += (x * std::log2(x / m) + y * std::log2(y / m)) / 160;
      n.entropy += (y * std::log(y) - x * std::log(x)) / 80;
      pq += x * y;
      pp += x * x;
      qq += y * y;
    }
    n.cosine += pq / std::sqrt(pp * qq) / 80;
    n.mass_a += mass_a / 80;
    n.mass_b += mass_b / 80;
  }
  return n;
}

void check_video(const Json& row, const VideoNumbers& n) {
  CHECK(row["query_segment"] == "video");
  CHECK(row["key_segment"] == "video");
  CHECK(row["rows"] == 80);
  CHECK(n.js > 0.01);
  CHECK(row["js_mean"].get<double>() == Approx(n.js).epsilon(1e-4));
  CHECK(row["mean_abs"].get<double>() == Approx(n.mean_abs).epsilon(1e-4));
  CHECK(row["total_variation"].get<double>() == Approx(n.variation).epsilon(1e-4));
  CHECK(row["cosine"].get<double>() == Approx(n.cosine).epsilon(1e-5));
  CHECK(row["entropy_change"].get<double>() == Approx(n.entropy).margin(1e-4));
  CHECK(row["mass_a"].get<double>() == Approx(n.mass_a).epsilon(1e-5));
  CHECK(row["mass_b"].get<double>() == Approx(n.mass_b).epsilon(1e-5));
  CHECK(row["lse_mean"].is_null());
}

ProgramResult run_diff(const TemporaryFolder& folder, const std::string& a, const std::string& b,
                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"diff", folder / a, folder / b, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_attnscope(arguments);
}

Json rows_of(const ProgramResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["pairs"];
}

}  // namespace

TEST_CASE("captures with other prompts are compared over their video") {
  const TemporaryFolder folder;
  const ReferenceCall a = call_with(10, 1), b = call_with(14, 2);
  a.write(folder.path() / "a.safetensors");
  b.write(folder.path() / "b.safetensors");
  const Json rows = rows_of(run_diff(folder, "a.safetensors", "b.safetensors", {"--json"}));
  REQUIRE(rows.size() == 1);
  check_video(rows[0], video_numbers(a, 10, b, 14));
  CHECK(rows[0]["max_query"] >= 10);
  CHECK(rows[0]["max_key"] >= 10);
  // Little memory and one thread give equal rows.
  CHECK(rows == rows_of(run_diff(folder, "a.safetensors", "b.safetensors",
                                 {"--json", "--memory", "1500KiB", "--threads", "1"})));
  const std::string text = run_diff(folder, "a.safetensors", "b.safetensors").out;
  CHECK(text.find("video -> video, each row divided by its sum there: A 0.") != std::string::npos);
  REQUIRE(run_diff(folder, "a.safetensors", "b.safetensors", {"-o", folder / "d.csv"}).exit_code ==
          0);
  CHECK(read_file(folder / "d.csv").find("query_segment,key_segment,mass_a") != std::string::npos);
}

TEST_CASE("a file holds pairs of the same and of other tokens") {
  const TemporaryFolder folder;
  // Layer 1 has the same tokens in both, layer 2 another prompt.
  for (const std::string side : {"a", "b"}) {
    const uint64_t seed = side == "a" ? 1 : 2;
    std::filesystem::create_directory(folder.path() / side);
    call_with(10, seed, "2x5x8", "1").write(folder.path() / side / "one.safetensors");
    call_with(side == "a" ? 10 : 14, seed).write(folder.path() / side / "two.safetensors");
  }
  REQUIRE(run_diff(folder, "a", "b", {"-o", folder / "d.h5"}).exit_code == 0);
  const Json rows = rows_of(run_diff(folder, "a", "b", {"--json"}));
  REQUIRE(rows.size() == 2);
  CHECK_FALSE(rows[0].contains("query_segment"));
  CHECK(rows[1]["query_segment"] == "video");
  const auto mass = read_dataset(folder / "d.h5", "/mass_a").values;
  REQUIRE(mass.size() == 2);
  CHECK(std::isnan(mass[0]));
  CHECK(mass[1] == rows[1]["mass_a"].get<double>());
  CHECK(read_dataset(folder / "d.h5", "/a_layer").values == std::vector<double>{1, 2});
}

TEST_CASE("captures of the same tokens are compared by segment when asked to") {
  const TemporaryFolder folder;
  const ReferenceCall a = call_with(10, 1), b = call_with(10, 2);
  a.write(folder.path() / "a.safetensors");
  b.write(folder.path() / "b.safetensors");
  const Json rows =
      rows_of(run_diff(folder, "a.safetensors", "b.safetensors", {"--json", "--segments"}));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["query_segment"] == "text");
  CHECK(rows[1]["key_segment"] == "video");
  CHECK(rows[1]["rows"] == 10);
  check_video(rows[3], video_numbers(a, 10, b, 10));
  CHECK(rows[3]["mass_a"].get<double>() + rows[2]["mass_a"].get<double>() ==
        Approx(1).epsilon(1e-6));
}

TEST_CASE("tokens that have nothing in common are refused, and what differs is named") {
  const TemporaryFolder folder;
  call_with(10, 1).write(folder.path() / "a.safetensors");
  call_with(14, 2, "2x8x5").write(folder.path() / "other.safetensors");
  call_with(10, 2, "2x8x5").write(folder.path() / "turned.safetensors");
  ReferenceCall({1, 1, 1, 40, 40, 16}, 3)
      .fact("step", "4")
      .fact("layer", "2")
      .fact("kind", "joint")
      .write(folder.path() / "plain.safetensors");
  const auto refusal = [&](const std::string& b, const std::string& what,
                           const std::vector<std::string>& more = {}) {
    const auto result = run_diff(folder, "a.safetensors", b, more);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find(what) != std::string::npos);
  };
  refusal("other.safetensors", "have no segment of queries in common");
  refusal("other.safetensors", "text 10, video 2x5x8");
  refusal("plain.safetensors", "maps of different sizes cannot be compared");
  refusal("turned.safetensors", "needs maps of the same tokens",
          {"--product", "pooled:8", "-o", folder / "d.h5"});
  refusal("turned.safetensors", "segment by segment, all rows", {"--sample", "4"});
  // As many tokens, of another grid: the text alone is the same.
  const Json rows = rows_of(run_diff(folder, "a.safetensors", "turned.safetensors", {"--json"}));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["query_segment"] == "text");
  CHECK(rows[0]["key_segment"] == "text");
}
