#include <cstdlib>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/skip.h"
#include "tests/support/stream_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

const std::string kRoot = project_folder();
/// Of the status line, which has sizes of caches.
constexpr uint32_t kStatusRows = 28;

bool fonts_are_installed() {
  const bool inter = fs::exists("/usr/share/fonts/opentype/inter/Inter-Regular.otf");
  const bool mono = fs::exists("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf");
  if (!inter || !mono)
    skip_test("fonts-inter or fonts-dejavu-core is not installed (scripts/setup tests)");
  return inter && mono;
}

/// Draws a view and compares it with tests/golden/NAME.png; ATTNSCOPE_UPDATE_GOLDEN=1 in the
/// environment writes that instead.
void check_golden(const std::string& name, const std::string& script,
                  const std::vector<std::string>& options,
                  const std::string& capture = kRoot + "/samples/moving-shapes") {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{capture, "--size", "960x640", "--cache", "none"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const WindowResult r = run_window(folder.path().string(), arguments,
                                    script + "\nwait exact\nwait idle\nshot now.png\n");
  CHECK(r.err == "");
  REQUIRE(r.exit_code == 0);
  const fs::path golden = fs::path(kRoot) / "tests/golden" / (name + ".png");
  if (std::getenv("ATTNSCOPE_UPDATE_GOLDEN") != nullptr) {
    fs::copy_file(folder.path() / "now.png", golden, fs::copy_options::overwrite_existing);
    return;
  }
  const Picture now = read_png(folder / "now.png");
  const Picture then = read_png(golden.string());
  REQUIRE(now.width == then.width);
  REQUIRE(now.height == then.height);
  const PictureLikeness likeness = compare_pictures(now, then, now.height - kStatusRows);
  const bool alike = likeness.similarity >= 0.985 && likeness.bad_share <= 0.005;
  INFO(name << ": similarity " << likeness.similarity << ", bad pixels " << likeness.bad_share);
  if (!alike) {
    const fs::path kept = fs::current_path() / "golden-differences";
    fs::create_directories(kept);
    fs::copy_file(folder.path() / "now.png", kept / (name + "-now.png"),
                  fs::copy_options::overwrite_existing);
    write_difference(now, then, kept / (name + "-difference.png"));
    WARN("see " << kept.string());
  }
  CHECK(alike);
}

}  // namespace

TEST_CASE("the whole map looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("whole-map", "layer 2\nhead 0\nquery 3 8 7", {});
}

TEST_CASE("a zoomed view in the light theme looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("zoomed-light",
               "layer 1\nhead 2\nquery 2 6 6\nreverse on\ncolormap magma\nscale linear\n"
               "zoom 16 304 160 448",
               {"--theme", "light"});
}

TEST_CASE("printed numbers look as they did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("numbers", "layer 2\nhead 2\nproduct logits\nquery 0 0 3\nzoom 16 26 160 170", {});
}

TEST_CASE("a picture of every head of the step beside the matrix") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("atlas", "size 800 520\natlas on\nlayer 2\nhead 0\nquery 3 8 7\nwait atlas", {});
}

TEST_CASE("what a cache had dropped is hatched in the map and in the film of a query") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  const TemporaryFolder folder;
  joined_call(true).fact("q_state", "final").write(folder.path() / "joined.safetensors");
  check_golden("evicted", "size 800 520\nquery 6 0 1", {}, folder / "joined.safetensors");
}

TEST_CASE("weights of either sign have colours on both sides of 0 and no logits beside them") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  const TemporaryFolder folder;
  ReferenceCall call({1, 2, 2, 48, 48, 8}, 5);
  call.version(2)
      .fact("score", "linear:normaliser")
      .fact("grid", "8x2x3")
      .fact("q_state", "final")
      .tensor("normaliser", "F32", {1, 2, 48}, raw(std::vector<float>(96, 4)));
  call.write(folder.path() / "linear.safetensors");
  check_golden("linear-normaliser", "size 800 520\nhead 1\nquery 6 0 1", {},
               folder / "linear.safetensors");
}

TEST_CASE("a token's row as a volume, cut open at its frame") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("volume",
               "size 800 600\nlayer 2\nhead 0\nquery 3 8 7\nvolume threshold 0.4\n"
               "volume slice t 3\nvolume orbit -40 20\npane volume",
               {});
}

TEST_CASE("numbers of rows and keys beside the map, and the mass between frames") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("tracks",
               "layer 2\nhead 0\nquery 3 8 7\ntrack rows entropy\ntrack keys mass\nframes on\n"
               "zoom 160 592 300 900",
               {});
}

TEST_CASE("steps under the toolbar with a number of a head as a curve") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  const TemporaryFolder folder;
  const std::string capture = (folder.path() / "steps").string();
  const ProgramResult made =
      run_attnscope({"synth", "--grid", "4x8x10", "--text", "8@start", "--layers", "3", "--steps",
                     "9", "--heads", "2", "--quiet", "-o", capture});
  REQUIRE(made.exit_code == 0);
  check_golden("timeline",
               "size 800 600\nlayer 1\nstep 4\nhead 1\nquery 1 4 5\nvolume emission\n"
               "timeline entropy",
               {}, capture);
}

TEST_CASE("a head that looks along time is blocks on the diagonal by y, x and t") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  const TemporaryFolder folder;
  const std::string capture = (folder.path() / "temporal").string();
  const ProgramResult made =
      run_attnscope({"synth", "--grid", "8x4x6", "--text", "8@start", "--kinds", "temporal",
                     "--heads", "1", "--quiet", "-o", capture});
  REQUIRE(made.exit_code == 0);
  check_golden("order", "size 800 600\nquery 1 2 3\norder yxt", {}, capture);
}

TEST_CASE("the words of the prompt look as they did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("words", "layer 2\nhead 0\nquery 3 8 7\nwords on\nword \"red circle\"", {});
}

TEST_CASE("a difference of two heads looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("difference",
               "layer 2\nhead 0\nb head 3 0\ndifference signed\nquery 3 8 7\nb ranked on", {});
}

TEST_CASE("a film over the capture's own pictures looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("film",
               "size 800 600\nlayer 2\nhead 0\nquery 3 8 7\npane query\nfilm contour\nfilm one\n"
               "film frame 4",
               {});
}

TEST_CASE("a mask over the matrix, and what its pane tells, look as they did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("mask",
               "layer 2\nhead 0\nquery 3 8 7\nmask spatial:frames=1\nmask drop 0 128 512 640\n"
               "mask lost on\nwait mask",
               {});
}

TEST_CASE("pins, two maps with numbers left and right of a line, and their ranked rows") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("split",
               "layer 2\nhead 0\nb head 3 0\nb split 0.5\nb ranked on\nquery 3 8 7\n"
               "pin 1 706 415\npin 2 708 420\nzoom 702 711 412 421",
               {});
}

TEST_CASE("heads keep their colours beside a difference, and a low window its panes") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("crowded",
               "size 800 600\nlayer 2\nhead 0\nquery 3 8 7\natlas on\nwords on\nframes on\n"
               "mask spatial:frames=1\nb head 3 0\ndifference signed\nb ranked on\nwait atlas\n"
               "wait mask",
               {});
}

TEST_CASE("the palette looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("palette", "wait exact\nkey Ctrl+P\ntype circle", {});
}

TEST_CASE("the menu looks as it did") {
  if (!can_open_windows() || !fonts_are_installed()) return;
  check_golden("menu", "wait exact\nclick \"Toolbar/Menu\"", {});
}

TEST_CASE("pictures that differ are told apart") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run_window(folder.path().string(), {kRoot + "/samples/moving-shapes", "--size", "960x640"},
                 "layer 2\nhead 0\nwait exact\nwait idle\nshot a.png\nlayer 3\nwait exact\n"
                 "shot b.png\nlayer 2\nwait exact\nwait idle\nshot c.png\n");
  REQUIRE(r.exit_code == 0);
  const Picture a = read_png(folder / "a.png"), b = read_png(folder / "b.png");
  const Picture c = read_png(folder / "c.png");
  CHECK(compare_pictures(a, b, a.height).similarity < 0.95);
  CHECK(compare_pictures(a, c, a.height - kStatusRows).similarity > 0.9999);
}
