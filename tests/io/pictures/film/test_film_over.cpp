// Numbers over frames of a video, and films written as videos and pictures.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "io/pictures/film/film_over.h"
#include "io/pictures/film/film_writer.h"
#include "io/pictures/png_reader.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

constexpr float kMaskedCell = -std::numeric_limits<float>::infinity();
const ColourScale kLinear(Colormap::grey, ScaleKind::linear, {0, 1});

GreyImage plain(int width, int height, uint8_t grey) {
  return {width, height,
          std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height), grey)};
}

FilmOver as(FilmMode mode, double outlined = 0) {
  FilmOver over;
  over.mode = mode;
  over.outlined = outlined;
  return over;
}

/// Pixels of a colour.
int count(const Canvas& canvas, Rgb colour) {
  int found = 0;
  for (int y = 0; y < canvas.height(); ++y) {
    for (int x = 0; x < canvas.width(); ++x) found += canvas.at(x, y) == colour ? 1 : 0;
  }
  return found;
}

/// PATH of this process, while this lives.
class SearchPath {
 public:
  explicit SearchPath(const std::string& path) : before_(std::getenv("PATH")) {
    setenv("PATH", path.c_str(), 1);
  }
  ~SearchPath() { setenv("PATH", before_.c_str(), 1); }
  SearchPath(const SearchPath&) = delete;
  SearchPath& operator=(const SearchPath&) = delete;

 private:
  std::string before_;
};

Canvas square(int i) {
  Canvas canvas(31, 17, {10, 10, 10});
  canvas.fill({i, i, 8, 8}, {200, 40, 40});
  return canvas;
}

/// An "ffmpeg" of a folder of its own.
void write_encoder(const fs::path& folder, const std::string& script) {
  fs::create_directories(folder);
  const fs::path file = folder / "ffmpeg";
  std::ofstream(file) << "#!/bin/sh\n" << script;
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("differences of either sign cover and are outlined by their size") {
  const ColourScale scale(Colormap::coolwarm, ScaleKind::linear, {-1, 1});
  const std::vector<float> numbers{-1, 0, 0.5f, 1};
  FilmOver over = as(FilmMode::tint);
  over.by_size = true;
  const Canvas tint = film_over(plain(4, 1, 100), numbers, 1, 4, scale, over);
  CHECK(tint.at(0, 0) == tinted(100, scale.colour(-1), film_cover(1, 1)));
  CHECK(tint.at(1, 0) == tinted(100, scale.colour(0), film_cover(0, 1)));
  CHECK(tint.at(2, 0) == tinted(100, scale.colour(0.5), film_cover(0.5, 1)));
  CHECK(tint.at(3, 0) == tinted(100, scale.colour(1), film_cover(1, 1)));
  over = as(FilmMode::outline, 1);
  over.by_size = true;
  const Canvas outline = film_over(plain(40, 10, 100), numbers, 1, 4, scale, over);
  const auto white = [&](int from) {
    int found = 0;
    for (int x = from; x < from + 10; ++x) found += outline.at(x, 0) == Rgb{255, 255, 255} ? 1 : 0;
    return found;
  };
  CHECK(white(0) == 10);
  CHECK(white(10) == 0);
  CHECK(white(20) == 0);
  CHECK(white(30) == 10);
}

TEST_CASE(
    "a tint covers the more, the larger the number, and by its opacity; unknown ones nothing") {
  const GreyImage frame = plain(5, 2, 100);
  const std::vector<float> numbers{0, 1, kMaskedCell, std::nanf("")};
  FilmOver over = as(FilmMode::tint);
  Canvas full = film_over(frame, numbers, 1, 4, kLinear, over);
  // Cells begin at ⌊i·5/4⌋: 0, 1, 2, 3.
  CHECK(full.at(0, 0) == Rgb{85, 85, 85});
  CHECK(full.at(1, 1) == Rgb{232, 232, 232});
  CHECK(full.at(2, 0) == Rgb{100, 100, 100});
  CHECK(full.at(4, 1) == Rgb{100, 100, 100});
  over.opacity = 0.5;
  CHECK(film_over(frame, numbers, 1, 4, kLinear, over).at(1, 1) == Rgb{166, 166, 166});
}

TEST_CASE("an outline goes around the cells that are large enough, and through none of them") {
  const GreyImage frame = plain(40, 40, 90);
  std::vector<float> numbers(16, 0.1f);
  for (const size_t at : {size_t{5}, size_t{6}, size_t{9}}) numbers[at] = 0.9f;
  const Canvas canvas = film_over(frame, numbers, 4, 4, kLinear, as(FilmMode::outline, 0.5));
  constexpr Rgb kLine{255, 255, 255}, kFrame{90, 90, 90};
  // The upper side of cells (1, 1) and (1, 2), and nothing between these.
  CHECK(canvas.at(12, 10) == kLine);
  CHECK(canvas.at(28, 10) == kLine);
  CHECK(canvas.at(20, 14) == kFrame);
  CHECK(canvas.at(15, 15) == kFrame);
  // Cell (2, 1) has (1, 1) above it: no line there, but at its other sides.
  CHECK(canvas.at(14, 20) == kFrame);
  CHECK(canvas.at(14, 29) == kLine);
  CHECK(canvas.at(19, 25) == kLine);
  CHECK(canvas.at(35, 35) == kFrame);
  CHECK(count(film_over(frame, numbers, 4, 4, kLinear, as(FilmMode::outline, 2)), kFrame) == 1600);
}

TEST_CASE("contours stand where the scale is at their shares") {
  // Numbers rise evenly from 0 in the first column's middle to 1 in the last one's.
  const GreyImage frame = plain(220, 40, 0);
  std::vector<float> numbers;
  for (int i = 0; i < 22; ++i) numbers.push_back(static_cast<float>(i % 11) / 10);
  const Canvas canvas = film_over(frame, numbers, 2, 11, kLinear, as(FilmMode::contour));
  for (const double share : kContourShares) {
    const auto x = static_cast<int>(10 + 200 * share);
    const Rgb colour = colormap_at(Colormap::grey, share);
    CHECK(canvas.at(x, 20) == colour);
    CHECK_FALSE(canvas.at(x + 8, 20) == colour);
    CHECK_FALSE(canvas.at(x - 8, 20) == colour);
  }
  const std::vector<float> flat(22, 0.5f);
  CHECK(count(film_over(frame, flat, 2, 11, kLinear, as(FilmMode::contour)), {0, 0, 0}) == 8800);
}

TEST_CASE("the outlined cells are the fewest that hold a share of the sum") {
  const std::vector<float> numbers{1, 4, kMaskedCell, 3, std::nanf(""), 2};
  CHECK(mass_threshold(numbers, 0.4) == 4);
  CHECK(mass_threshold(numbers, 0.5) == 3);
  CHECK(mass_threshold(numbers, 0.7) == 3);
  CHECK(mass_threshold(numbers, 1) == 1);
  CHECK(std::isinf(mass_threshold(std::vector<float>{0, 0}, 0.5)));
  CHECK(quantile_threshold(std::vector<float>{-3, 5, 1, kMaskedCell}, 0.5) == 1);
  CHECK(std::isinf(quantile_threshold(std::vector<float>{kMaskedCell}, 0.5)));
}

TEST_CASE("a film becomes a folder of pictures, whole or not at all") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "film";
  write_png_sequence(3, square, out, false);
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 3);
  const GreyImage second = read_png_grey(out / "frame-0001.png");
  CHECK(second.width == 31);
  CHECK(second.pixels[0] == 10);
  CHECK(second.pixels[31 + 1] != 10);
  CHECK_FALSE(fs::exists(folder.path() / "film.part"));
  const auto refused = [&](bool force) {
    return thrown_text(ErrorCode::file, [&] { write_png_sequence(2, square, out, force); });
  };
  CHECK(refused(false).find("already exists") != std::string::npos);
  CHECK(refused(true).empty());
  CHECK_FALSE(fs::exists(out / "frame-0002.png"));
  // A folder with anything else is nobody's to replace.
  std::ofstream(out / "notes.txt") << "mine";
  CHECK(refused(true).find("other files") != std::string::npos);
  CHECK(fs::exists(out / "notes.txt"));
  // A film that cannot be drawn leaves nothing.
  const auto fails = [](int i) -> Canvas {
    if (i == 1) throw Error(ErrorCode::value, "no");
    return square(i);
  };
  CHECK(thrown_text(ErrorCode::value, [&] {
          write_png_sequence(2, fails, folder.path() / "other/", false);
        }) == "no");
  CHECK_FALSE(fs::exists(folder.path() / "other"));
  CHECK_FALSE(fs::exists(folder.path() / "other.part"));
}

TEST_CASE("without ffmpeg a video is refused in one line") {
  const TemporaryFolder folder;
  const SearchPath nothing(folder.path().string());
  const std::string text = thrown_text(
      ErrorCode::unavailable, [&] { write_mp4(2, square, 8, folder.path() / "a.mp4", false); });
  CHECK(text.find("needs ffmpeg, which is not in PATH") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path() / "a.mp4"));
}

TEST_CASE("what ffmpeg says is told, and nothing is left") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "a.mp4";
  const auto refused = [&](const std::string& script) {
    write_encoder(folder.path() / "bin", script);
    const SearchPath own((folder.path() / "bin").string() + ":/usr/bin:/bin");
    return thrown_text(ErrorCode::file, [&] { write_mp4(400, square, 8, out, false); });
  };
  // It ends before it was sent all images, and after.
  CHECK(refused("echo 'no such codec' >&2; exit 1\n").find("ffmpeg: no such codec") !=
        std::string::npos);
  CHECK(refused("cat > /dev/null; echo 'disk full' >&2; exit 1\n").find("disk full") !=
        std::string::npos);
  CHECK(refused("exit 3\n").find("without saying why") != std::string::npos);
  CHECK_FALSE(fs::exists(out));
  CHECK_FALSE(fs::exists(folder.path() / "a.mp4.part"));
}

TEST_CASE("ffmpeg is sent every image as it is") {
  const TemporaryFolder folder;
  write_encoder(folder.path() / "bin", "for last; do :; done\ncat > \"${last#file:}\"\n");
  const SearchPath own((folder.path() / "bin").string() + ":/usr/bin:/bin");
  write_mp4(3, square, 8, folder.path() / "a.mp4", false);
  const std::string bytes = read_bytes(folder.path() / "a.mp4");
  REQUIRE(bytes.size() == 3u * 31 * 17 * 3);
  CHECK(static_cast<uint8_t>(bytes[31 * 17 * 3 * 2 + (2 * 31 + 2) * 3]) == 200);
}

TEST_CASE("a video is written by ffmpeg, of odd sizes too") {
  if (std::system("ffmpeg -version > /dev/null 2>&1") != 0) {
    skip_test("ffmpeg is not installed (scripts/setup ffmpeg)");
    return;
  }
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "a.mp4";
  write_mp4(5, square, 8, out, false);
  const std::string bytes = read_bytes(out);
  CHECK(bytes.substr(4, 4) == "ftyp");
  // Read back as players take large videos, which are BT.709.
  const std::string raw = (folder.path() / "a.raw").string();
  const std::string read = "ffmpeg -v error -i '" + out.string() +
                           "' -vf scale=in_color_matrix=bt709 -f rawvideo -pix_fmt rgb24 '" + raw +
                           "'";
  REQUIRE(std::system(read.c_str()) == 0);
  const std::string pixels = read_bytes(raw);
  REQUIRE(pixels.size() == 5u * 32 * 18 * 3);
  const auto is_about = [&](int image, int x, int y, Rgb colour) {
    const size_t at = 3 * static_cast<size_t>((image * 18 + y) * 32 + x);
    const auto near = [&](size_t i, int value) {
      return std::abs(static_cast<uint8_t>(pixels[at + i]) - value) < 10;
    };
    return near(0, colour.r) && near(1, colour.g) && near(2, colour.b);
  };
  for (int image = 0; image < 5; ++image) {
    INFO(image);
    CHECK(is_about(image, image + 4, image + 4, {200, 40, 40}));
    CHECK(is_about(image, 24, 4, {10, 10, 10}));
    CHECK(is_about(image, 31, 17, {10, 10, 10}));
  }
  CHECK(thrown_text(ErrorCode::file, [&] {
          write_mp4(5, square, 8, out, false);
        }).find("already exists") != std::string::npos);
  write_mp4(5, square, 8, out, true);
}
