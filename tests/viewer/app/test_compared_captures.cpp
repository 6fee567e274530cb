// Two captures in one window: what is A's stays A's, facts go for both, and what is opened after
// another is shown by itself.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

ReferenceCall call_of(int64_t layer, uint64_t seed) {
  ReferenceCall call({1, 2, 2, 40, 40, 8}, seed);
  call.fact("kind", "self")
      .fact("step", "4")
      .fact("layer", std::to_string(layer))
      .fact("grid", "5x2x4");
  return call;
}

/// Layers 0, 1 and 2 of step 4; `seed` makes another capture of other numbers.
void write_capture(const fs::path& folder, uint64_t seed) {
  fs::create_directory(folder);
  for (const int64_t layer : {0, 1, 2}) {
    call_of(layer, seed + static_cast<uint64_t>(layer))
        .write(folder / ("layer" + std::to_string(layer) + ".safetensors"));
  }
}

std::vector<Json> json_lines(const std::string& out) {
  std::vector<Json> lines;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("{")) lines.push_back(Json::parse(line));
  }
  return lines;
}

}  // namespace

TEST_CASE("steps, curves and heads are those of the first of two captures, also while B is seen") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_capture(folder.path() / "a", 10);
  write_capture(folder.path() / "b", 20);
  const WindowResult r = run_window(
      folder.path().string(), {"a", "b", "--layers", "1"},
      "timeline entropy\ntimeline over layers\natlas on\nwait atlas\nwait idle\n"
      "expect curve_points == 3\nexpect atlas_heads == 6\nb show on\nwait exact\nwait idle\n"
      "expect curve_points == 3\nexpect atlas_heads == 6\nprobe 7 9\nb show off\nprobe 7 9\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  const std::vector<Json> probes = json_lines(r.out);
  REQUIRE(probes.size() == 2);
  const double a = call_of(1, 11).row(0, 0, 7)[9], b = call_of(1, 21).row(0, 0, 7)[9];
  for (const Json& probe : probes) {
    INFO(probe.dump());
    CHECK(std::abs(probe["weight"].get<double>() - a) < 1e-5 * a);
    CHECK(std::abs(probe["b"]["weight"].get<double>() - b) < 1e-5 * b);
    CHECK(std::abs(probe["difference"]["weight"].get<double>() - (a - b)) < 1e-5 * (a + b));
  }
}

TEST_CASE("facts that are given go for both captures") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_capture(folder.path() / "a", 10);
  write_capture(folder.path() / "same", 10);
  const WindowResult r =
      run_window(folder.path().string(), {"a", "same", "--layers", "1", "--scale", "0.01"},
                 "difference signed\nwait exact\nprobe 7 9\nkey Ctrl+L\nprint clipboard\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  const std::vector<Json> probes = json_lines(r.out);
  REQUIRE(probes.size() == 1);
  CHECK(probes[0]["difference"]["weight"].get<double>() == 0);
  // Nearly the same everywhere: 1/40.
  CHECK(std::abs(probes[0]["weight"].get<double>() - 0.025) < 0.002);
  const std::string dump = folder.path().string();
  CHECK(r.out.find("attnscope view " + dump + "/a --scale 0.01 " + dump + "/same --steps 4") !=
        std::string::npos);
}

TEST_CASE("a smaller capture is opened while the heads of a larger one are seen") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_capture(folder.path() / "large", 10);
  call_of(0, 30).write(folder.path() / "small.safetensors");
  const WindowResult r =
      run_window(folder.path().string(), {"large"},
                 "layer 2\nhead 1\natlas on\nwait atlas\nexpect atlas_heads == 6\n"
                 "open small.safetensors\natlas on\nwait atlas\nwait exact\n"
                 "expect atlas_heads == 2\nexpect calls == 1\n");
  INFO(r.err);
  CHECK(r.exit_code == 0);
}

TEST_CASE("the palette of an empty window has no numbers to tell") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = run_window(folder.path().string(), {},
                                    "key Ctrl+P\ntype print words\nkey Enter\nkey Escape\n"
                                    "key Ctrl+P\ntype print curve_points\nkey Enter\nkey Escape\n"
                                    "key Ctrl+P\ntype print atlas_heads\nkey Enter\n");
  INFO(r.err);
  CHECK(r.exit_code == 0);
}
