#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "io/files/checksum.h"
#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/skip.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;
namespace fs = std::filesystem;

namespace {

uint64_t hash_of(const std::string& path) {
  const std::string bytes = read_file(path);
  return checksum64(std::as_bytes(std::span(bytes)));
}

/// Fails with these words on standard error, and leaves nothing at `out`.
void check_refused(const std::vector<std::string>& arguments, int exit_code,
                   const std::string& message, const std::string& out) {
  std::vector<std::string> all{"synth", "--quiet"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto result = run_attnscope(all);
  INFO(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.err.find(message) != std::string::npos);
  CHECK_FALSE(fs::exists(out));
  CHECK_FALSE(fs::exists(out + ".part"));
}

}  // namespace

TEST_CASE("a synthetic capture has the same bytes everywhere") {
  const TemporaryFolder folder;
  struct Case {
    std::string dtype;
    uint64_t hash;
  };
  // Recorded from x86-64; another value means that captures cannot be compared between machines.
  for (const Case& c : {Case{"bf16", 0xd9d998cd1231addbu}, Case{"f16", 0xcf290f12a2db2a7au},
                        Case{"f32", 0xa19c3ab3a025766au}}) {
    const std::string out = folder / (c.dtype + ".safetensors");
    const auto result =
        run_attnscope({"synth", "--grid", "5x8x10", "--text", "16@end", "--head-dim", "48",
                       "--values", "--seed", "7", "--dtype", c.dtype, "-o", out, "--quiet"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    INFO(c.dtype << ": 0x" << std::hex << hash_of(out));
    CHECK(hash_of(out) == c.hash);
  }
}

TEST_CASE("a synthetic capture opens, with its heads' kinds and other values in each call") {
  const TemporaryFolder folder;
  const std::string out = folder / "dump";
  const auto result =
      run_attnscope({"synth", "--grid", "5x8x10", "--text", "16@end", "--kinds", "temporal,text",
                     "--heads", "3", "--layers", "2", "--steps", "2", "--seed", "5", "-o", out});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = Json::parse(read_file(out + "/capture.json"));
  CHECK(json["calls"].size() == 4);
  CHECK(json["extra"]["synthetic"]["seed"] == 5);
  CHECK(json["extra"]["synthetic"]["head_kinds"] == Json({"temporal", "text", "temporal"}));
  const auto info = run_attnscope({"info", out});
  INFO(info.out << info.err);
  CHECK(info.exit_code == 0);
  CHECK(info.out.find("4 joint attention calls") != std::string::npos);
  CHECK(info.out.find("[1, 3, 416, 64] bf16") != std::string::npos);
  CHECK(info.out.find("values: finite") != std::string::npos);
  const auto query =
      run_attnscope({"query", out, "--query", "2,3,4", "--steps", "1", "--layers", "0", "--json"});
  INFO(query.err);
  CHECK(query.exit_code == 0);
  CHECK(query.out.find("word") != std::string::npos);
  // A call, a head and a seed each have random values of their own.
  std::vector<std::string> tails;
  for (const auto& call : json["calls"]) {
    const std::string bytes = read_file(out + "/" + call["file"].get<std::string>());
    tails.push_back(bytes.substr(bytes.size() - 4096));
  }
  std::sort(tails.begin(), tails.end());
  CHECK(std::adjacent_find(tails.begin(), tails.end()) == tails.end());
  // Nothing but the capture is left.
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 5);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("synth refuses what it cannot do") {
  const TemporaryFolder folder;
  const std::string out = folder / "x";
  check_refused({"--preset", "hunyuanvidio", "-o", out}, 2, "did you mean hunyuanvideo?", out);
  check_refused({"--grid", "5x8x8", "--kinds", "sink,temporl", "-o", out}, 2,
                "(got temporl); did you mean temporal?", out);
  check_refused({"--grid", "1x2x3", "-o", out}, 2, "grid 1x2x3 is too small", out);
  check_refused({"--grid", "5x8x8", "--kinds", "text", "-o", out}, 2,
                "needs at least 16 text tokens (got 0)", out);
  check_refused({"--grid", "5x8x8", "--head-dim", "8", "-o", out}, 2, "needs a head_dim of", out);
  check_refused({"--grid", "5x8x8", "--dtype", "f64", "-o", out}, 2,
                "--dtype: expected bf16, f16, f32 (got f64)", out);
  check_refused({"--grid", "5x8x8", "--text", "all", "-o", out}, 2, "--text all", out);
  check_refused({"--grid", "50000x50000x50000", "-o", out}, 2, "more than 2^31 - 1 tokens", out);
  check_refused({"-o", out}, 2, "synth needs --preset NAME or --grid TxHxW", out);
  check_refused({"--grid", "5x8x8", "--layers", "2", "-o", out + ".safetensors"}, 2,
                "holds one call, and 2 are asked for", out + ".safetensors");
  check_refused({"--grid", "5x8x8", "-o", out + "/deep/er"}, 1, "er", out);
}

TEST_CASE("synth replaces captures when told to, and nothing else") {
  const TemporaryFolder folder;
  for (const std::string name : {"dump", "one.safetensors"}) {
    const std::string out = folder / name;
    const auto synth = [&](const std::string& seed, bool force) {
      std::vector<std::string> a{"synth", "--grid", "5x8x8", "--seed", seed, "-o", out, "--quiet"};
      if (force) a.emplace_back("--force");
      return run_attnscope(a);
    };
    const std::string file = name == "dump" ? out + "/step0000_layer000.safetensors" : out;
    REQUIRE(synth("1", false).exit_code == 0);
    const uint64_t first = hash_of(file);
    const auto refused = synth("2", false);
    CHECK(refused.exit_code == 1);
    CHECK(refused.err.find("already exists (--force replaces it)") != std::string::npos);
    CHECK(hash_of(file) == first);
    REQUIRE(synth("2", true).exit_code == 0);
    CHECK(hash_of(file) != first);
  }
  const std::string kept = folder / "dump/notes.txt";
  std::ofstream(kept) << "mine";
  const auto refused =
      run_attnscope({"synth", "--grid", "5x8x8", "-o", folder / "dump", "--force", "--quiet"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("notes.txt: is no part of a capture") != std::string::npos);
  CHECK(read_file(kept) == "mine");
}

TEST_CASE("a synth run that is interrupted or killed leaves no capture") {
  const TemporaryFolder folder;
  const std::string out = folder / "dump";
  const auto to = [](const std::string& path) {
    return std::vector<std::string>{"synth", "--grid", "5x8x8", "--layers",
                                    "4",     "-o",     path,    "--quiet"};
  };
  const TemporaryFolder elsewhere;
  const long writes = calls_of(to(elsewhere / "whole"), "stop-write");
  const auto interrupted = run_attnscope(to(out), with_fault("stop-write", writes / 2));
  INFO(interrupted.err);
  CHECK(interrupted.exit_code == 4);
  CHECK(fs::is_empty(folder.path()));
  const auto killed = run_attnscope(to(out), with_fault("kill-write", writes / 2));
  CHECK(killed.exit_code == 128 + SIGKILL);
  CHECK_FALSE(fs::exists(out));
  CHECK(fs::exists(out + ".part"));
  CHECK_FALSE(fs::exists(out + ".part/capture.json"));
  const std::vector<std::string> small{"synth", "--grid", "5x8x8", "-o", out, "--quiet"};
  const auto refused = run_attnscope(small);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("is left from an interrupted run") != std::string::npos);
  auto forced = small;
  forced.emplace_back("--force");
  const auto result = run_attnscope(forced);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(fs::exists(out + "/capture.json"));
  CHECK_FALSE(fs::exists(out + ".part"));
}

TEST_CASE("synth keeps its memory small") {
  if (sanitized()) {
    skip_test("a sanitizer inflates memory");
    return;
  }
  const TemporaryFolder folder;
  constexpr int64_t kMiB = 1 << 20;
  const auto dry = run_attnscope(
      {"synth", "--preset", "hunyuanvideo", "-o", folder / "big", "--dry-run", "--quiet"});
  CHECK(dry.exit_code == 0);
  CHECK(dry.out.find("1462960128 bytes") != std::string::npos);
  CHECK(dry.peak_bytes < 64 * kMiB);
  CHECK(fs::is_empty(folder.path()));
  const auto real = run_attnscope({"synth", "--preset", "hunyuanvideo", "--heads", "4", "-o",
                                   folder / "big.safetensors", "--quiet"});
  INFO(real.err << "peak " << real.peak_bytes / kMiB << " MiB");
  CHECK(real.exit_code == 0);
  CHECK(fs::file_size(folder / "big.safetensors") > 243826688);
  CHECK(real.peak_bytes < 64 * kMiB);
}
