// Pages of the map that is seen, which the window writes.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/pictures/picture_style.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The pixels of two pages, laid with their lower left corners on each other, that differ by more
/// than rounding within so many columns and rows from there.
int64_t different_pixels(const Picture& a, const Picture& b, int columns, int rows) {
  const auto apart = [](uint8_t x, uint8_t y) { return std::abs(x - y) > 2; };
  int64_t different = 0;
  for (int y = 1; y <= rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const Rgb p = a.at(x, static_cast<int>(a.height) - y);
      const Rgb q = b.at(x, static_cast<int>(b.height) - y);
      different += apart(p.r, q.r) || apart(p.g, q.g) || apart(p.b, q.b);
    }
  }
  return different;
}

}  // namespace

TEST_CASE("the map that is seen is a page, of cells as render draws them") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const WindowResult result =
      run_window(folder.path().string(), {capture, "--cache", "none"},
                 "layer 1\nhead 3\nrange 1e-5 0.1\nzoom 0 256 256 512\nfigure part.png\n"
                 "figure part.pdf\nfigure part.svg\norder yxt\nfigure order.svg\norder stored\n"
                 "b head 1 0\ndifference signed\nfigure difference.svg\ndifference off\n"
                 "theme light\nfigure light.png\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto drawn = run_attnscope(
      {"render", capture, "--picture", "matrix", "--layers", "1", "--heads", "3", "--rows", "0:256",
       "--cols", "256:512", "--block", "1", "--range", "1e-5:0.1", "-o", folder / "drawn.png"});
  INFO(drawn.err);
  REQUIRE(drawn.exit_code == 0);
  const Picture seen = read_png(folder / "part.png"), rendered = read_png(folder / "drawn.png");
  REQUIRE(seen.width > 1000);
  REQUIRE(seen.height > 1000);
  CHECK(different_pixels(seen, rendered, 1000, 1000) < 100);
  CHECK(read_bytes(folder.path() / "part.pdf").substr(0, 5) == "%PDF-");
  const std::string page = read_bytes(folder.path() / "part.svg");
  CHECK(contains(page, "queries 0 to 255, keys 256 to 511"));
  CHECK(contains(page, "single entries"));
  CHECK(contains(page, "layer 1"));
  CHECK(contains(read_bytes(folder.path() / "order.svg"), "order yxt: numbers count places"));
  const std::string difference = read_bytes(folder.path() / "difference.svg");
  CHECK(contains(difference, "single differences"));
  CHECK(contains(difference, "A − B"));
  CHECK(seen.at(0, 0) == PictureStyle().background);
  CHECK(read_png(folder / "light.png").at(0, 0) == picture_style(StyleName::slide).background);
}

TEST_CASE("a page of the map is refused where it is not what is seen, with the way out") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "there.pdf") << "kept";
  const auto refusal = [&](const std::string& script) {
    const WindowResult result = run_window(
        folder.path().string(), {sample("moving-shapes"), "--cache", "none"}, script + "\n");
    CHECK(result.exit_code != 0);
    return result.err;
  };
  CHECK(contains(refusal("figure map.gif"), "expected FILE.pdf, FILE.svg or FILE.png"));
  CHECK(contains(refusal("figure there.pdf"), "already exists"));
  CHECK(read_bytes(folder.path() / "there.pdf") == "kept");
  CHECK(contains(refusal("pane query\nfigure a.pdf"), "first pane all"));
  CHECK(contains(refusal("b head 1 0\nb split 0.5\nfigure a.pdf"), "first b split off"));
  CHECK_FALSE(fs::exists(folder.path() / "a.pdf"));
}
