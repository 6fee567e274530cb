#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ReferenceCall call_of(uint64_t seed, int64_t tokens = 300) {
  return ReferenceCall({1, 2, 1, tokens, tokens, 16}, seed);
}

std::vector<Json> probes_of(const std::string& out) {
  std::istringstream stream(out);
  std::vector<Json> probes;
  for (std::string line; std::getline(stream, line);) {
    if (line.front() == '{') probes.push_back(Json::parse(line));
  }
  return probes;
}

}  // namespace

TEST_CASE("heads are compared by words, by clicks and by keys") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = run_window(
      folder.path().string(), {kSample, "--layers", "2", "--heads", "0"},
      "expect b == none\nkey X\nexpect difference == off\nclick Toolbar/B\n"
      "expect b == step 10 layer 3 branch cond head 0\nb head 3 1\n"
      "expect b == step 10 layer 3 branch cond head 1\nkey X\nexpect difference == signed\n"
      "wait exact\nclick Difference/logratio\nexpect difference == logratio\nwait exact\n"
      "click Toolbar/Logit\nexpect difference == signed\nclick Toolbar/Weight\nclick B/Split\n"
      "expect difference == off\nwait exact\nclick B/Range\nclick B/Zoom\nwait exact\n"
      "b ranked on\nwait idle\nexpect js_rows == 1024\nexpect js > 0.01\nexpect js < 1\n"
      "click Rows/0\nexpect query != none\nb show on\nwait exact\nb show off\n"
      "difference abs\nwait exact\nkey Ctrl+E\nexpect exact == true\nprobe "
      "100 120\nsave-session s.session\n"
      "key Ctrl+Z\nexpect difference == off\nclick Toolbar/B\nexpect b == none\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const auto probes = probes_of(r.out);
  REQUIRE(probes.size() == 1);
  const double a = probes[0]["weight"].get<double>(), b = probes[0]["b"]["weight"].get<double>();
  CHECK(a > 0);
  CHECK(b > 0);
  CHECK(probes[0]["difference"]["weight"].get<double>() == a - b);
  const WindowResult back =
      run_window(folder.path().string(), {"--session", "s.session"},
                 "expect difference == abs\nexpect b == step 10 layer 3 branch cond head 1\n");
  INFO(back.err);
  CHECK(back.exit_code == 0);
}

TEST_CASE("a second capture is compared, and found again by its session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const ReferenceCall a = call_of(1), b = call_of(2);
  a.write(folder.path() / "a.safetensors");
  b.write(folder.path() / "b.safetensors");
  const WindowResult r = run_window(
      folder.path().string(), {"a.safetensors", "b.safetensors", "--heads", "1"},
      "expect head == 1\nexpect b == step 0 layer 0 branch all head 1\ndifference signed\n"
      "wait exact\nprobe 17 211\nhead 0\nprobe 250 3\nsave-session s.session\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const auto probes = probes_of(r.out);
  REQUIRE(probes.size() == 2);
  const auto check = [&](const Json& probe, int64_t head, size_t query, size_t key) {
    const double of_a = a.row(0, head, static_cast<int64_t>(query))[key];
    const double of_b = b.row(0, 1, static_cast<int64_t>(query))[key];
    CHECK(probe["weight"].get<double>() == Approx(of_a).epsilon(1e-4));
    CHECK(probe["b"]["weight"].get<double>() == Approx(of_b).epsilon(1e-4));
    CHECK(probe["difference"]["weight"].get<double>() == Approx(of_a - of_b).margin(1e-6));
    CHECK(std::abs(of_a - of_b) > 1e-5);
  };
  check(probes[0], 1, 17, 211);
  check(probes[1], 0, 250, 3);
  const WindowResult back = run_window(folder.path().string(), {"--session", "s.session"},
                                       "expect difference == signed\nwait exact\nprobe 250 3\n");
  INFO(back.err);
  REQUIRE(back.exit_code == 0);
  CHECK(probes_of(back.out) == std::vector<Json>{probes[1]});
}

TEST_CASE("two exports are subtracted, ranked, and found again by their session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  for (const char* const head : {"0", "1"}) {
    const std::string out = at + "/" + head + ".h5";
    const std::string sample = project_folder() + "/samples/moving-shapes";
    REQUIRE(run_attnscope({"export", sample, "--layers", "2", "--heads", head, "--dtype", "f32",
                           "--quiet", "-o", out})
                .exit_code == 0);
  }
  const std::string look = "difference signed\nwait exact\nprobe 300 400\n";
  const WindowResult r =
      run_window(at, {"0.h5", "1.h5"},
                 "wait picture\nexpect b == step 10 layer 2 branch cond head 1\n" + look +
                     "pane ranked\nwait idle\nexpect js_rows == 1024\nprint js_max\npane all\n"
                     "click \"Rows/0\"\nexpect query != none\nsave-session s.session\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  // The capture that both are of has the same numbers.
  const WindowResult capture =
      run_window(at, {project_folder() + "/samples/moving-shapes"},
                 "layer 2\nhead 0\nb head 2 1\n" + look + "b ranked on\nwait idle\nprint js_max\n");
  INFO(capture.err);
  REQUIRE(capture.exit_code == 0);
  const auto read = probes_of(r.out), computed = probes_of(capture.out);
  REQUIRE(read.size() == 1);
  REQUIRE(computed.size() == 1);
  CHECK(read[0]["difference"]["weight"].get<double>() ==
        Approx(computed[0]["difference"]["weight"].get<double>()).margin(1e-9));
  const auto number_of = [](const std::string& out) {
    return std::stod(out.substr(out.find("js_max ") + 7));
  };
  CHECK(number_of(r.out) == Approx(number_of(capture.out)).epsilon(1e-6));
  const WindowResult back =
      run_window(at, {"--session", "s.session"}, "expect difference == signed\nwait exact\n");
  INFO(back.err);
  CHECK(back.exit_code == 0);
  // An export, which is read, and a capture, which is computed, are not compared.
  const WindowResult mixed =
      run_window(at, {"0.h5", project_folder() + "/samples/moving-shapes"}, "quit\n");
  CHECK(mixed.exit_code == 2);
  CHECK(contains(mixed.err, "0.h5: is an export, and "));
  CHECK(contains(mixed.err, "compare two captures, or two exports"));
}

TEST_CASE("row sums of both captures are kept, each beside its own") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  for (const char* const side : {"a", "b"}) {
    fs::create_directory(folder.path() / side);
    call_of(side[0]).write(folder.path() / side / "c.safetensors");
  }
  const auto kept = [&](const char* side) {
    int64_t files = 0;
    std::error_code error;
    for (fs::directory_iterator item(folder.path() / side / ".attnscope", error), end;
         !error && item != end; item.increment(error)) {
      files += item->path().filename().string().starts_with("lse-") ? 1 : 0;
    }
    return files;
  };
  const auto run = [&](const std::string& script) {
    const WindowResult r = run_window(folder.path().string(), {"a", "b"}, script);
    INFO(r.err);
    CHECK(r.exit_code == 0);
    return probes_of(r.out);
  };
  run("wait exact\nwait idle\n");
  CHECK(kept("a") == 1);
  CHECK(kept("b") == 0);
  const auto first = run("b show on\nwait exact\nprobe 17 211\nwait idle\n");
  CHECK(kept("a") == 1);
  CHECK(kept("b") == 1);
  CHECK(run("b show on\nwait exact\nprobe 17 211\n") == first);
}

TEST_CASE("a second capture of another size is refused, and what was open stays") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  call_of(1).write(folder.path() / "a.safetensors");
  call_of(2, 120).write(folder.path() / "small.safetensors");
  const std::string sizes =
      "maps of different sizes cannot be compared (A has 300 queries and 300 keys, B 120 and 120)";
  const WindowResult script = run_window(folder.path().string(), {"a.safetensors"},
                                         "wait exact\nb capture small.safetensors\n");
  CHECK(script.exit_code == 1);
  CHECK(contains(script.err, ":2: side B: " + sizes));
  const WindowResult start =
      run_window(folder.path().string(), {"a.safetensors", "small.safetensors"}, "quit\n");
  CHECK(start.exit_code != 0);
  CHECK(contains(start.err, sizes));
  const WindowResult missing =
      run_window(folder.path().string(), {"a.safetensors"}, "b capture nowhere.safetensors\n");
  CHECK(missing.exit_code == 1);
  CHECK(contains(missing.err, "nowhere.safetensors"));
}

TEST_CASE("a NaN of side B ends the wait for a difference with its cause") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  call_of(1).write(folder.path() / "a.safetensors");
  std::vector<float> q(2 * 300 * 16, 0.5f), k(300 * 16, 0.25f);
  k[100] = std::nanf("");
  CallFile()
      .tensor("q", "F32", {1, 2, 300, 16}, raw(q))
      .tensor("k", "F32", {1, 1, 300, 16}, raw(k))
      .write(folder.path() / "nan.safetensors");
  const WindowResult r = run_window(folder.path().string(), {"a.safetensors", "nan.safetensors"},
                                    "wait exact\ndifference signed\nwait exact\n");
  CHECK(r.exit_code == 1);
  CHECK(contains(r.err, ":3: wait exact"));
  CHECK(contains(r.err, "nan.safetensors"));
}

TEST_CASE("two captures are compared within one memory") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  call_of(1, 2500).write(folder.path() / "a.safetensors");
  call_of(2, 2500).write(folder.path() / "b.safetensors");
  const WindowResult r =
      run_window(folder.path().string(),
                 {"a.safetensors", "b.safetensors", "--memory", "96MiB", "--cache", "none"},
                 "difference signed\nwait exact\nexpect host_mib < 96\ndifference abs\nwait exact\n"
                 "expect host_mib < 96\nb split 0.5\nwait exact\nexpect host_mib < 96\n");
  INFO(r.err);
  CHECK(r.exit_code == 0);
}
