// The command palette in a window: what is typed is found and done, what fails is told and stays.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/png_picture.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

namespace {

WindowResult run(const TemporaryFolder& folder, const std::string& script) {
  return run_window(folder.path().string(), {project_folder() + "/samples/moving-shapes"}, script);
}

}  // namespace

TEST_CASE("the palette finds places, heads, words and commands, and does them") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "wait exact\nkey Ctrl+P\ntype 3,5,6\nkey Enter\nexpect query == \"3 5 6\"\n"
          "key Ctrl+P\ntype l2 h1\nkey Enter\nexpect layer == 2\nexpect head == 1\n"
          "key Ctrl+P\ntype circle\nkey Enter\nexpect query == \"text 3\"\n"
          "key Ctrl+P\ntype colormap magma\nkey Enter\nexpect colormap == magma\n"
          "key Ctrl+P\ntype pool\nkey Enter\ntype mean\nkey Enter\n"
          "expect pool == mean\nkey Ctrl+Z\nexpect pool == max\n"
          "key Ctrl+P\ntype next layer\nkey Enter\nexpect layer == 3\n"
          "key Ctrl+L\nprint clipboard\nkey F\nkey Ctrl+E\nprint clipboard\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(r.out.find("--steps 10 --layers 3 --heads 1") != std::string::npos);
  CHECK(r.out.find("attnscope export ") != std::string::npos);
  CHECK(r.out.find("--rows 448:592 --cols 448:592 -o step10_layer3_head1.h5") != std::string::npos);
}

TEST_CASE("what the palette cannot do is told below its field") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "wait exact\nkey Ctrl+P\nshot open.png\ntype step 99\nkey Enter\nshot told.png\n"
          "click \"Palette/Field\"\nkey Escape\nexpect step == 10\nshot closed.png\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const Picture open = read_png(folder / "open.png"), told = read_png(folder / "told.png");
  const Picture closed = read_png(folder / "closed.png");
  CHECK(compare_pictures(open, told, open.height).similarity < 0.99);
  CHECK(compare_pictures(told, closed, told.height).similarity < 0.99);
  const WindowResult shut = run(folder, "type circle\n");
  CHECK(shut.exit_code == 1);
  CHECK(shut.err.find("type: no field takes text now") != std::string::npos);
}
