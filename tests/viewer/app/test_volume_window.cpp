// The query's row as a volume, and the steps, in the window: by script, in sessions and pictures.
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

WindowResult run(const TemporaryFolder& folder, const std::string& capture,
                 const std::string& script) {
  return run_window(folder.path().string(), {capture, "--cache", "none"}, script);
}

/// A capture of six steps of three layers.
std::string steps(const TemporaryFolder& folder) {
  const std::string path = (folder.path() / "steps").string();
  const ProgramResult made =
      run_attnscope({"synth", "--grid", "2x6x8", "--text", "4@start", "--layers", "3", "--steps",
                     "6", "--heads", "2", "--quiet", "-o", path});
  REQUIRE(made.exit_code == 0);
  return path;
}

}  // namespace

TEST_CASE("a script turns the volume, cuts it open and keeps it in a session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run(
      folder, kSample,
      "layer 2\nhead 0\nquery 3 8 7\nexpect volume == off\nwait exact\nvolume on\nwait exact\n"
      "expect volume == max\nshot max.png\nvolume orbit 40 -30\nwait exact\nshot turned.png\n"
      "volume orbit -35 25\nwait exact\nshot again.png\nvolume emission\nwait exact\n"
      "shot emission.png\nvolume slice t 3\nwait exact\nshot cut.png\n"
      "click \"Volume/y\"\nclick \"Volume/Max\"\nexpect volume == max\nvolume threshold 0.25\n"
      "pane volume\nwait exact\nsave-session kept.session\nclick \"Volume/Volume\"\nwait exact\n"
      "expect volume == off\nkey V\nexpect volume == max\nkey Ctrl+Z\nexpect volume == off\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("max.png") == bytes("again.png"));
  CHECK(bytes("max.png") != bytes("turned.png"));
  CHECK(bytes("max.png") != bytes("emission.png"));
  CHECK(bytes("emission.png") != bytes("cut.png"));
  CHECK(contains(bytes("kept.session"), "\npane volume\n"));
  CHECK(contains(bytes("kept.session"), "\nvolume slice y 6\n"));
  CHECK(contains(bytes("kept.session"), "\nvolume threshold 0.25\n"));
  const WindowResult restored =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "wait exact\nexpect volume == max\nclick \"Volume/Slice\"\n");
  INFO(restored.err);
  CHECK(restored.exit_code == 0);
  const WindowResult picture =
      run_window(folder.path().string(),
                 {"--session", "kept.session", "--cache", "none", "--screenshot", "volume.png"});
  INFO(picture.err);
  CHECK(picture.exit_code == 0);
  CHECK(std::filesystem::file_size(folder.path() / "volume.png") > 1000);
  const WindowResult wrong = run(folder, kSample, "volume slice t 7\n");
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "script.txt:1: volume slice t 7: outside the grid (valid 0 to 6)"));
}

TEST_CASE("where no grid is known, a volume says so and has no planes") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "plain.safetensors").string();
  const ProgramResult made = run_attnscope(
      {"synth", "--grid", "4x8x8", "--heads", "1", "--kinds", "spatial", "--quiet", "-o", path});
  REQUIRE(made.exit_code == 0);
  const WindowResult result =
      run_window(folder.path().string(), {path, "--grid", "none", "--cache", "none"},
                 "volume on\nwait exact\nshot plain.png\nvolume slice x 1\n");
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "script.txt:4: volume slice x 1: no grid is known"));
}

TEST_CASE("steps are clicked, played and drawn as a curve") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string capture = steps(folder);
  const WindowResult result = run(
      folder, capture,
      "layer 1\nstep 0\nwait exact\nexpect playing == off\nclick \"Timeline/S3\"\nwait exact\n"
      "expect step == 3\nexpect layer == 1\nkey Ctrl+Z\nexpect step == 0\n"
      "timeline entropy\nwait idle\nexpect curve_points == 6\nshot steps.png\n"
      "timeline over layers\nwait idle\nexpect curve_points == 3\nshot layers.png\n"
      "timeline loop off\ntimeline speed 1\nkey Shift+Space\nexpect playing == on\ntimeline speed "
      "30\nwait idle 60\n"
      "expect playing == off\nexpect step == 5\nkey Ctrl+Z\nexpect step == 0\n"
      "timeline loop on\nplay on\nwait picture\nplay off\nexpect playing == off\n"
      "pane timeline\nwait idle\nsave-session kept.session\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("steps.png") != bytes("layers.png"));
  CHECK(contains(bytes("kept.session"), "\ntimeline entropy\n"));
  CHECK(contains(bytes("kept.session"), "\ntimeline over layers\n"));
  CHECK(contains(bytes("kept.session"), "\npane timeline\n"));
  const WindowResult restored =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "wait idle\nexpect curve_points == 3\n");
  INFO(restored.err);
  CHECK(restored.exit_code == 0);
}

TEST_CASE("a capture of one step has no strip unless a curve is asked for") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult none = run(folder, kSample, "wait exact\nclick \"Timeline/Track\"\n");
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, "no such label"));
  const WindowResult curve =
      run(folder, kSample,
          "timeline over layers\ntimeline text_mass\nwait idle\nexpect curve_points == 4\n"
          "print curve_points\nclick \"Timeline/Plot\"\n");
  INFO(curve.err);
  CHECK(curve.exit_code == 0);
  const WindowResult unknown = run(folder, kSample, "wait exact\nprint curve_points\n");
  CHECK(contains(unknown.err, "curve_points: not known yet"));
}
