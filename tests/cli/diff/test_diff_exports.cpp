// attnscope diff of exports: entries as they stand in the files.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 90;

ReferenceCall exported_call(uint64_t seed) {
  return ReferenceCall({1, 2, 1, kTokens, kTokens, 16}, seed)
      .fact("step", "4")
      .fact("layer", "2")
      .fact("grid", "2x5x9");
}

ProgramResult run_diff(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "diff");
  arguments.emplace_back("--quiet");
  return run_attnscope(arguments);
}

Json pairs_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const auto result = run_diff(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["pairs"];
}

/// Captures a and b, and an export of each call.
struct Exports {
  TemporaryFolder folder;
  ReferenceCall a = exported_call(1), b = exported_call(2);

  Exports() {
    a.write(folder.path() / "a.safetensors");
    b.write(folder.path() / "b.safetensors");
  }
  std::string make(const std::string& capture, const std::string& name,
                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> run{"export", folder / (capture + ".safetensors"), "-o"};
    run.insert(run.end(), {folder / name, "--quiet"});
    run.insert(run.end(), more.begin(), more.end());
    if (std::count(more.begin(), more.end(), "--dtype") == 0) {
      run.insert(run.end(), {"--dtype", "f32"});
    }
    const auto result = run_attnscope(run);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return folder / name;
  }
};

}  // namespace

TEST_CASE("exports of whole maps differ by what their captures differ by") {
  const Exports exports;
  const std::string a = exports.make("a", "a.h5"), b = exports.make("b", "b.h5");
  const Json found = pairs_of({a, b});
  const Json computed =
      pairs_of({exports.folder / "a.safetensors", exports.folder / "b.safetensors"});
  REQUIRE(found.size() == 2);
  for (size_t h = 0; h < 2; ++h) {
    for (const auto& [name, value] : computed[h].items()) {
      INFO(name);
      if (value.is_number_float()) {
        CHECK(found[h][name].get<double>() == Approx(value.get<double>()).epsilon(1e-5));
      } else if (name != "top") {
        CHECK(found[h][name] == value);
      }
    }
    CHECK(found[h]["js_mean"] > 0.01);
    CHECK(found[h]["entries"] == kTokens * kTokens);
    CHECK(found[h]["entries_of"] == kTokens * kTokens);
  }
  // Heads of one file, in little memory.
  const Json own = pairs_of({a, "--heads", "0", "--b-head", "1"});
  CHECK(own[0]["a"]["head"] == 0);
  CHECK(own[0]["b"]["head"] == 1);
  CHECK(own == pairs_of({a, "--heads", "0", "--b-head", "1", "--memory", "512KiB"}));
  const Json some = pairs_of({a, b, "--sample", "10"});
  CHECK(some[0]["rows"] == 10);
  CHECK(some[0]["rows_of"] == kTokens);
}

TEST_CASE("rounding of a file counts, as entries stand in it") {
  const Exports exports;
  const std::string exact = exports.make("a", "f32.h5");
  const std::string rounded = exports.make("a", "f16.h5", {"--dtype", "f16"});
  const std::string packed = exports.make("a", "u8.h5", {"--dtype", "u8", "--compress", "gzip"});
  double largest = 0;
  for (int64_t i = 0; i < kTokens; ++i) {
    for (const double weight : exports.a.row(0, 0, i)) largest = std::max(largest, weight);
  }
  const Json half = pairs_of({exact, rounded})[0], bytes = pairs_of({exact, packed})[0];
  CHECK(half["max_abs"] > 0);
  CHECK(half["max_abs"].get<double>() <= largest * 0x1p-11);
  CHECK(bytes["max_abs"] > half["max_abs"]);
  CHECK(bytes["max_abs"] < 0.05);
  CHECK(pairs_of({exact, exact})[0]["max_abs"] == 0);
}

TEST_CASE("what only one file has is not compared, and counted") {
  const Exports exports;
  const std::string whole = exports.make("a", "a.h5");
  const std::string part = exports.make("b", "part.h5", {"--cols", "10:50", "--rows", "20:60"});
  const Json found = pairs_of({whole, part})[1];
  CHECK(found["rows"] == 40);
  CHECK(found["rows_of"] == kTokens);
  CHECK(found["entries"] == 40 * 40);
  CHECK(found["entries_of"] == 40 * kTokens);
  double sum = 0, largest = 0;
  int64_t query = -1, key = -1;
  for (int64_t i = 20; i < 60; ++i) {
    const auto x = exports.a.row(0, 1, i), y = exports.b.row(0, 1, i);
    for (size_t j = 10; j < 50; ++j) {
      const double difference = std::abs(x[j] - y[j]);
      sum += difference;
      if (difference <= largest) continue;
      largest = difference;
      query = i;
      key = static_cast<int64_t>(j);
    }
  }
  CHECK(found["mean_abs"].get<double>() == Approx(sum / 1600).epsilon(1e-5));
  CHECK(found["max_abs"].get<double>() == Approx(largest).epsilon(1e-5));
  CHECK(found["max_query"] == query);
  CHECK(found["max_key"] == key);
  for (const char* const name : {"total_variation", "js_mean", "cosine", "entropy_change"}) {
    INFO(name);
    CHECK(found[name].is_null());
  }
  CHECK(run_diff({whole, part}).out.find("1600/3600") != std::string::npos);
}

TEST_CASE("logits have differences, and no divergence") {
  const Exports exports;
  const std::string a = exports.make("a", "a.h5", {"--product", "logits"});
  const std::string b = exports.make("b", "b.h5", {"--product", "logits"});
  const Json found = pairs_of({a, b})[0];
  CHECK(found["mean_abs"] > 0.01);
  CHECK(found["total_variation"].is_null());
  CHECK(found["js_mean"].is_null());
  CHECK(found["masked_rows"] == 0);
}

TEST_CASE("an export beside a capture differs by what their captures differ by") {
  const Exports exports;
  const std::string a = exports.folder / "a.safetensors", b = exports.folder / "b.safetensors";
  const Json computed = pairs_of({a, b});
  const std::string of_a = exports.make("a", "a.h5"), of_b = exports.make("b", "b.h5");
  const Json first = pairs_of({of_a, b}), second = pairs_of({a, of_b});
  REQUIRE(first.size() == 2);
  for (size_t h = 0; h < 2; ++h) {
    for (const Json* const found : {&first[h], &second[h]}) {
      for (const auto& [name, value] : computed[h].items()) {
        INFO(name);
        if (!value.is_number_float()) continue;
        CHECK((*found)[name].get<double>() == Approx(value.get<double>()).epsilon(1e-5));
      }
      CHECK((*found)["js_mean"] > 0.01);
      CHECK((*found)["entries"] == kTokens * kTokens);
    }
    CHECK(first[h]["stored_a"] == "f32");
    CHECK(first[h]["stored_b"].is_null());
    CHECK(second[h]["stored_a"].is_null());
  }
  CHECK(first == pairs_of({of_a, b, "--memory", "1500KiB", "--threads", "1"}));
  // An export in f16 differs from its capture by the rounding.
  const std::string half = exports.make("a", "f16.h5", {"--dtype", "f16", "--compress", "gzip"});
  const Json rounded = pairs_of({half, a})[0];
  CHECK(rounded["max_abs"] > 0);
  CHECK(rounded["max_abs"] < 0x1p-11);
  CHECK(run_diff({half, a, "--heads", "0"}).out.find("A f16 of the file") != std::string::npos);
  CHECK(pairs_of({of_a, a})[0]["max_abs"] < 1e-6);
  // A part of it.
  const Json part =
      pairs_of({a, exports.make("b", "part.h5", {"--cols", "10:50", "--rows", "20:60"})})[0];
  CHECK(part["entries"] == 1600);
  CHECK(part["entries_of"] == 40 * kTokens);
  CHECK(part["js_mean"].is_null());
  double sum = 0;
  for (int64_t i = 20; i < 60; ++i) {
    const auto x = exports.a.row(0, 0, i), y = exports.b.row(0, 0, i);
    for (size_t j = 10; j < 50; ++j) sum += std::abs(x[j] - y[j]) / 1600;
  }
  CHECK(part["mean_abs"].get<double>() == Approx(sum).epsilon(1e-5));
}

TEST_CASE("exported logits are compared with those of a capture") {
  const Exports exports;
  const std::string logits = exports.make("a", "logits.h5", {"--product", "logits"});
  const Json same = pairs_of({logits, exports.folder / "a.safetensors"})[0];
  const Json other = pairs_of({logits, exports.folder / "b.safetensors"})[0];
  CHECK(same["max_abs"] < 1e-5);
  CHECK(other["mean_abs"] > 0.01);
  CHECK(other["js_mean"].is_null());
  CHECK(other["total_variation"].is_null());
}

TEST_CASE("exports that cannot be compared are one clear line") {
  const Exports exports;
  const std::string a = exports.make("a", "a.h5");
  ReferenceCall({1, 2, 1, 40, 40, 16}, 1)
      .fact("step", "4")
      .fact("layer", "2")
      .write(exports.folder / "small.safetensors");
  const auto refusal = [&](std::vector<std::string> arguments, const std::string& what) {
    const auto result = run_diff(std::move(arguments));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find(what) != std::string::npos);
  };
  refusal({a, exports.make("small", "small.h5")}, "maps of different sizes cannot be compared");
  refusal({a, exports.make("a", "logits.h5", {"--product", "logits"})},
          "logits and weights cannot be compared");
  refusal({a}, "would be compared with itself");
  refusal({a, "--b-head", "1", "--threads", "1"}, "--threads");
  refusal({exports.make("a", "p.h5", {"--product", "pooled", "--block", "8"}), "--b-head", "1"},
          "is an export of pooled, which has no maps");
  refusal(
      {exports.make("a", "r.h5", {"--rows", "0:9"}), exports.make("b", "s.h5", {"--rows", "9:20"})},
      "have no row and key in common");
}
