#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/project_paths.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

/// Without a display; `environment` are more settings of variables.
WindowResult run_without_display(const TemporaryFolder& folder, const std::string& arguments,
                                 const std::string& environment = "") {
  const std::string command = "cd " + shell_word(folder.path().string()) +
                              " && env -u DISPLAY -u WAYLAND_DISPLAY LIBGL_ALWAYS_SOFTWARE=1 "
                              "ASAN_OPTIONS=detect_leaks=0 " +
                              environment + " timeout 240 " + shell_word(program_path()) +
                              " view " + arguments + " >out.txt 2>err.txt </dev/null";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), read_bytes(folder / "out.txt"), read_bytes(folder / "err.txt")};
}

/// True where this machine can draw without a display; else the test case is skipped.
bool can_draw_offscreen() {
  const TemporaryFolder folder;
  const WindowResult r =
      run_without_display(folder, shell_word(kSample) + " --size 320x240 --screenshot a.png");
  const bool lacks = r.err.find("install libegl1") != std::string::npos;
  if (lacks) skip_test("libegl1 or libgl1-mesa-dri is not installed (scripts/setup tests)");
  return !lacks;
}

}  // namespace

TEST_CASE("a picture of the window needs no display, and is the same without one") {
  if (!can_draw_offscreen() || !can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string view = shell_word(kSample) + " --layers 2 --size 900x600 --screenshot ";
  const WindowResult without = run_without_display(folder, view + "without.png");
  CHECK(without.err == "");
  REQUIRE(without.exit_code == 0);
  const WindowResult with =
      run_window(folder.path().string(),
                 {kSample, "--layers", "2", "--size", "900x600", "--screenshot", "with.png"});
  REQUIRE(with.exit_code == 0);
  const Picture a = read_png(folder / "without.png"), b = read_png(folder / "with.png");
  REQUIRE(a.width == 900);
  REQUIRE(a.height == b.height);
  // But for the status line, which has sizes of caches.
  CHECK(compare_pictures(a, b, a.height - 28).similarity > 0.999);
}

TEST_CASE("a script without a display clicks, presses keys and resizes") {
  if (!can_draw_offscreen()) return;
  const TemporaryFolder folder;
  std::ofstream(folder / "script.txt") << R"(wait picture
click "Toolbar/Look"
click "Look/Mean"
expect pool == mean
key Escape
key ]
expect head == 1
size 640 480
wait exact
wait idle
shot small.png
size 1000 700
wait exact
shot large.png
)";
  const WindowResult r = run_without_display(folder, shell_word(kSample) + " --script script.txt");
  CHECK(r.err == "");
  REQUIRE(r.exit_code == 0);
  CHECK(read_png(folder / "small.png").width == 640);
  CHECK(read_png(folder / "large.png").height == 700);
  // A display that is gone is as good as none.
  const WindowResult gone =
      run_without_display(folder, shell_word(kSample) + " --screenshot gone.png", "DISPLAY=:987");
  CHECK(gone.err == "");
  CHECK(gone.exit_code == 0);
}

TEST_CASE("where nothing can draw, one line says what to install") {
  const TemporaryFolder folder;
  // EGL's vendors are found by files of a folder.
  const WindowResult r = run_without_display(folder, shell_word(kSample) + " --screenshot a.png",
                                             "__EGL_VENDOR_LIBRARY_DIRS=/nowhere");
  CHECK(r.exit_code == 1);
  CHECK(r.err.starts_with("attnscope: no display, and OpenGL 3.3 cannot draw without one here ("));
  CHECK(r.err.ends_with("): install libegl1 and libgl1-mesa-dri, or run under xvfb-run\n"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "a.png"));
}
