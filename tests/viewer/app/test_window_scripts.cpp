#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/project_paths.h"
#include "tests/support/recorded_call.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// An export of the sample.
void make_export(const std::filesystem::path& out, const std::string& options) {
  REQUIRE(std::system((shell_word(program_path()) + " export " + shell_word(kSample) + " " +
                       options + " --quiet -o " + shell_word(out.string()))
                          .c_str()) == 0);
}

/// The weights (null: 0 is not meant, but none) that `probe` printed.
std::vector<Json> weights_of(const std::string& out) {
  std::vector<Json> weights;
  for (const std::string& line : lines_of(out)) {
    if (line.front() == '{') weights.push_back(Json::parse(line)["weight"]);
  }
  return weights;
}

}  // namespace

TEST_CASE("an export is looked at like the capture that it was made from") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  make_export(folder / "crop.h5",
              "--layers 1,2 --heads 1,3 --rows 10:400 --cols 20:300 --dtype f32");
  const std::string probes = "probe 10 20\nprobe 399 299\nprobe 200 100\n";
  const WindowResult capture =
      run_window(folder.path().string(), {kSample, "--layers", "2", "--heads", "3"},
                 "wait picture\n" + probes);
  REQUIRE(capture.exit_code == 0);
  const WindowResult exported =
      run_window(folder.path().string(), {"crop.h5", "--layers", "2", "--heads", "3"},
                 "wait exact\nexpect rows == 1024\nexpect head == 3\nexpect layer == 2\n" + probes +
                     "probe 9 20\nprobe 10 300\nkey [\nexpect head == 1\nquery 1 4 5\nwait query\n"
                     "click \"Toolbar/Lift\"\nexpect product == lift\nwait idle\nshot seen.png\n");
  INFO(exported.err);
  REQUIRE(exported.exit_code == 0);
  const auto expected = weights_of(capture.out);
  const auto got = weights_of(exported.out);
  REQUIRE(expected.size() == 3);
  REQUIRE(got.size() == 5);
  for (size_t i = 0; i < 3; ++i) {
    const double value = expected[i].get<double>();
    CHECK(value > 0);
    CHECK(std::abs(got[i].get<double>() - value) <= 1e-6 * value);
  }
  CHECK(got[3].is_null());
  CHECK(got[4].is_null());
  const WindowResult logits =
      run_window(folder.path().string(), {"crop.h5"}, "wait picture\nproduct logits\n");
  CHECK(logits.exit_code == 1);
  CHECK(contains(logits.err, "product logits: there are weights only"));
}

TEST_CASE("weights that are stored as u8 codes are not called exact") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  make_export(folder / "u8.h5", "--layers 2 --heads 1 --dtype u8");
  make_export(folder / "f32.h5", "--layers 2 --heads 1 --dtype f32");
  const std::string probe = "wait exact\nprobe 200 100\n";
  const WindowResult codes = run_window(folder.path().string(), {"u8.h5"}, probe);
  const WindowResult floats = run_window(folder.path().string(), {"f32.h5"}, probe);
  REQUIRE(codes.exit_code == 0);
  REQUIRE(floats.exit_code == 0);
  const auto code = Json::parse(codes.out), exact = Json::parse(floats.out);
  CHECK(code["exact"] == false);
  CHECK(exact["exact"] == true);
  const double value = exact["weight"].get<double>();
  CHECK(std::abs(code["weight"].get<double>() - value) <= 0.034 * value);
}

TEST_CASE("blocks and single rows of an export are looked at") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  make_export(folder / "blocks.h5", "--product pooled --pyramid --block 16 --layers 2 --heads 1");
  make_export(folder / "rows.h5", "--product rows --queries 5,100,300 --layers 2 --heads 1");
  const WindowResult blocks =
      run_window(folder.path().string(), {"blocks.h5"},
                 "wait exact\nwait query\nwait idle\nprobe 100 200\nopen rows.h5\nwait exact\n"
                 "expect rows == 1024\nprobe 100 200\nprobe 101 200\n");
  INFO(blocks.err);
  CHECK(blocks.exit_code == 0);
  const std::vector<std::string> lines = lines_of(blocks.out);
  REQUIRE(lines.size() == 3);
  const auto of_block = Json::parse(lines[0]);
  CHECK(of_block["weight"].is_null());
  CHECK(of_block["exact"] == false);
  CHECK(of_block["block"] == 16);
  CHECK(of_block["block_max"] > of_block["block_mean"]);
  CHECK(Json::parse(lines[1])["exact"] == true);
  CHECK(Json::parse(lines[2])["exact"] == false);
}

TEST_CASE("a script in a hidden window chooses, clicks and expects") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = run_window(folder.path().string(), {kSample}, R"(wait picture
expect rows == 1024
expect level <= 2
layer 2
head 1
expect layer == 2
click "Toolbar/Logit"
expect product == logits
expect scale == linear
click "Toolbar/Weight"
click "Toolbar/Look"
click "Look/Mean"
expect pool == mean
click "Look/Scale"
click "Scale/sqrt"
expect scale == sqrt
key Escape
click "Toolbar/Head"
click "Head/3"
expect head == 3
key ]
expect head == 3
key [
expect head == 2
click "Query/Attended by"
expect reverse == on
query 3 8 7
wait exact
expect exact == true
expect query == "3 8 7"
click "Query/t5"
expect query != "3 8 7"
key Escape
expect query == none
key Ctrl+Z
expect query != none
click "Toolbar/Help"
key Escape
print texture_mib
wait idle
)");
  CHECK(r.err == "");
  CHECK(r.exit_code == 0);
  CHECK(contains(r.out, "texture_mib "));
}

TEST_CASE("what a window's probe tells agrees with double precision") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  ReferenceCall call(
      {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 300, .keys = 300, .width = 16}, 7);
  call.fact("grid", "3x10x10").fact("q_state", "final");
  call.write(folder.path() / "call.safetensors");
  const WindowResult r =
      run_window(folder.path().string(), {"call.safetensors", "--heads", "1"},
                 "wait exact\nprobe 0 0\nprobe 299 1\nprobe 17 255\nprobe 256 256\n");
  CHECK(r.err == "");
  REQUIRE(r.exit_code == 0);
  const auto lines = lines_of(r.out);
  REQUIRE(lines.size() == 4);
  for (const std::string& line : lines) {
    const auto entry = Json::parse(line);
    const double expected = call.row(0, 1, entry["q"].get<int64_t>())[entry["k"].get<size_t>()];
    INFO(line);
    CHECK(std::abs(entry["weight"].get<double>() - expected) <= 1e-4 * expected);
    CHECK(entry["exact"] == true);
  }
}

TEST_CASE("a script that expects something else ends with its line's number") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run_window(folder.path().string(), {kSample}, "wait picture\nexpect head == 3\nquit\n");
  CHECK(r.exit_code == 1);
  CHECK(contains(r.err, "script.txt:2: expect head == 3"));
  const WindowResult click =
      run_window(folder.path().string(), {kSample}, "wait picture\nclick \"Toolbar/Nothing\"\n");
  CHECK(click.exit_code == 1);
  CHECK(contains(click.err, "script.txt:2: "));
}

TEST_CASE("a broken file opened in the window is a dialog, and the capture stays") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  std::ofstream(folder / "broken.safetensors") << "this is no tensor file";
  std::ofstream(folder / "bad-session.json") << R"({"format": "attnscope-session/1", "captur": 1})";
  std::ofstream(folder / "lost-session.json") << R"({"format": "attnscope-session/1"})";
  ReferenceCall({.batch = 1, .heads = 1, .kv_heads = 1, .queries = 40, .keys = 40}, 3)
      .fact("q_state", "final")
      .write(folder.path() / "good.safetensors");
  const WindowResult r = run_window(folder.path().string(), {"good.safetensors"}, R"(wait exact
key Ctrl+O
click "Browser/broken.safetensors"
shot dialog.png
click "Error/Close"
expect rows == 40
key Ctrl+O
click "Browser/bad-session.json"
click "Error/Close"
key Ctrl+O
click "Browser/lost-session.json"
click "Error/Close"
expect rows == 40
expect exact == true
probe 3 4
key Ctrl+M
click "Error/Close"
key Ctrl+O
click "Browser/good.safetensors"
wait exact
)");
  CHECK(r.err == "");
  CHECK(r.exit_code == 0);
  CHECK(std::filesystem::file_size(folder.path() / "dialog.png") > 1000);
}

TEST_CASE("a screenshot waits for exact tiles and replaces nothing unasked") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  CHECK(run_window(at, {kSample, "--screenshot", "map.png"}).exit_code == 0);
  CHECK(std::filesystem::file_size(folder.path() / "map.png") > 20000);
  const WindowResult again = run_window(at, {kSample, "--screenshot", "map.png"});
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, "map.png"));
  CHECK(run_window(at, {kSample, "--screenshot", "map.png", "--force"}).exit_code == 0);
  CHECK(run_window(at, {kSample, "--screenshot", "map.gif"}).exit_code == 2);
}

TEST_CASE("a session brings the view back") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult saved = run_window(
      folder.path().string(), {kSample},
      "layer 3\nhead 2\nquery 2 5 6\nreverse on\ncolormap magma\npool mean\nzoom 100 200 300 400\n"
      "wait picture\nsave-session view.session\n");
  CHECK(saved.err == "");
  REQUIRE(saved.exit_code == 0);
  const WindowResult restored =
      run_window(folder.path().string(), {"--session", "view.session"},
                 "expect layer == 3\nexpect head == 2\nexpect query == \"2 5 6\"\n"
                 "expect reverse == on\nexpect colormap == magma\nexpect pool == mean\n");
  CHECK(restored.err == "");
  CHECK(restored.exit_code == 0);
}

TEST_CASE("a capture that does not agree with its own outputs is shown under a banner") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  RecordedCall call(1);
  call.attend();
  call.scale = 1;
  call.file().write(folder.path() / "call.safetensors");
  const WindowResult r = run_window(folder.path().string(), {"call.safetensors"}, R"(wait idle
click "Warning/Text"
click "Warning/Dismiss"
wait idle
click "Warning/Text"
)");
  // Once it is dismissed there is nothing to click.
  CHECK(r.exit_code == 1);
  CHECK(contains(r.err, "warning: layer 0, head "));
  CHECK(contains(r.err, "script.txt:5: "));
  call.scale = 0.125;
  call.file().write(folder.path() / "right.safetensors");
  const WindowResult right = run_window(folder.path().string(), {"right.safetensors"},
                                        "wait idle\nclick \"Warning/Text\"\n");
  CHECK(contains(right.err, "script.txt:2: "));
  CHECK(!contains(right.err, "warning"));
}

TEST_CASE("view refuses what it cannot show in one line") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  const auto plain = [&](const std::string& arguments) {
    const std::string command = "cd " + shell_word(at) + " && env -u DISPLAY -u WAYLAND_DISPLAY " +
                                shell_word(program_path()) + " view " + arguments +
                                " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return WindowResult{WEXITSTATUS(status), read_bytes(folder / "out.txt"),
                        read_bytes(folder / "err.txt")};
  };
  const WindowResult none = plain(shell_word(kSample));
  CHECK(none.exit_code == 1);
  CHECK(none.err ==
        "attnscope: no display: set DISPLAY or WAYLAND_DISPLAY, or run under xvfb-run\n");
  std::ofstream(folder / "maps.h5", std::ios::binary) << "\x89HDF\r\n\x1a\n and more";
  const WindowResult exported = plain("maps.h5");
  CHECK(exported.exit_code == 1);
  CHECK(contains(exported.err, "maps.h5: "));
  CHECK(lines_of(exported.err).size() == 1);
  make_export(folder / "real.h5", "--layers 0 --heads 0 --product lse");
  const WindowResult no_map = plain("real.h5");
  CHECK(no_map.exit_code == 2);
  CHECK(contains(no_map.err, "real.h5: is an export of lse, which has no maps"));
  make_export(folder / "map.h5", "--layers 0 --heads 0 --rows 0:9");
  CHECK(plain("map.h5 --grid 1x2x3").exit_code == 2);
  CHECK(plain("map.h5 --heads 1").exit_code == 2);
  CHECK(plain(shell_word(kSample) + " --size 100x100").exit_code == 2);
  CHECK(plain(shell_word(kSample) + " --theme pink").exit_code == 2);
  CHECK(plain("--screenshot x.png").exit_code == 2);
  std::ofstream(folder / "bad.txt") << "wait picture\nfly away\n";
  const WindowResult bad = plain(shell_word(kSample) + " --script bad.txt");
  CHECK(bad.exit_code == 2);
  CHECK(contains(bad.err, "bad.txt:2: "));
}
