#include <gif_lib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "io/pictures/film/film_animation.h"
#include "io/pictures/film/gif_palette.h"
#include "io/pictures/film/gif_writer.h"
#include "io/results/film_files.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

bool same(Rgb a, Rgb b) { return a == b; }

/// An animation as giflib reads it back.
struct Animation {
  int width = 0, height = 0;
  std::vector<std::vector<Rgb>> images;
  std::vector<int> delays;  ///< hundredths of a second
  bool loops = false;
  Rgb at(size_t image, int x, int y) const {
    return images[image]
                 [static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

Animation read_gif(const std::string& path) {
  int error = 0;
  GifFileType* gif = DGifOpenFileName(path.c_str(), &error);
  REQUIRE(gif != nullptr);
  REQUIRE(DGifSlurp(gif) == GIF_OK);
  Animation animation{gif->SWidth, gif->SHeight, {}, {}, false};
  for (int i = 0; i < gif->ImageCount; ++i) {
    const SavedImage& image = gif->SavedImages[i];
    const ColorMapObject* map =
        image.ImageDesc.ColorMap != nullptr ? image.ImageDesc.ColorMap : gif->SColorMap;
    REQUIRE(map != nullptr);
    std::vector<Rgb> pixels;
    for (int p = 0; p < animation.width * animation.height; ++p) {
      const GifColorType& c = map->Colors[image.RasterBits[p]];
      pixels.push_back({c.Red, c.Green, c.Blue});
    }
    animation.images.push_back(std::move(pixels));
    GraphicsControlBlock control{};
    REQUIRE(DGifSavedExtensionToGCB(gif, i, &control) == GIF_OK);
    animation.delays.push_back(control.DelayTime);
    for (int e = 0; e < image.ExtensionBlockCount; ++e) {
      const ExtensionBlock& block = image.ExtensionBlocks[e];
      animation.loops |= block.ByteCount == 11 && std::memcmp(block.Bytes, "NETSCAPE2.0", 11) == 0;
    }
  }
  DGifCloseFile(gif, &error);
  return animation;
}

Canvas gradient(int shift) {
  Canvas canvas(64, 48, {0, 0, 0});
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      canvas.fill({x, y, 1, 1}, {static_cast<uint8_t>(x * 4), static_cast<uint8_t>(y * 5),
                                 static_cast<uint8_t>((x + y + shift) % 256)});
    }
  }
  return canvas;
}

}  // namespace

TEST_CASE("an animation of few colours comes back exactly, and loops") {
  const TemporaryFolder folder;
  const auto draw = [](int i) {
    Canvas canvas(37, 11, {0x10, 0x12, 0x14});
    canvas.fill({i * 5, 2, 4, 7}, colormap_at(Colormap::viridis, 0.2 * i));
    return canvas;
  };
  write_gif(5, draw, {.delay_ms = 250, .shared_palette = true}, folder / "a.gif", false);
  const Animation read = read_gif(folder / "a.gif");
  CHECK(read.width == 37);
  CHECK(read.height == 11);
  CHECK(read.loops);
  REQUIRE(read.images.size() == 5);
  CHECK(read.delays == std::vector<int>(5, 25));
  for (int i = 0; i < 5; ++i) {
    const Canvas canvas = draw(i);
    int wrong = 0;
    for (int y = 0; y < 11; ++y) {
      for (int x = 0; x < 37; ++x) {
        wrong += !same(read.at(static_cast<size_t>(i), x, y), canvas.at(x, y));
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("of many colours the palette has near ones") {
  const TemporaryFolder folder;
  for (const bool shared : {true, false}) {
    write_gif(
        3, [](int i) { return gradient(i * 9); }, {.delay_ms = 100, .shared_palette = shared},
        folder / "g.gif", true);
    const Animation read = read_gif(folder / "g.gif");
    REQUIRE(read.images.size() == 3);
    double squares = 0;
    int worst = 0;
    for (size_t i = 0; i < 3; ++i) {
      const Canvas canvas = gradient(static_cast<int>(i) * 9);
      for (int y = 0; y < 48; ++y) {
        for (int x = 0; x < 64; ++x) {
          const Rgb a = read.at(i, x, y), b = canvas.at(x, y);
          for (const int d : {a.r - b.r, a.g - b.g, a.b - b.b}) {
            squares += d * d;
            worst = std::max(worst, std::abs(d));
          }
        }
      }
      std::set<std::array<uint8_t, 3>> colours;
      for (const Rgb c : read.images[i]) colours.insert({c.r, c.g, c.b});
      CHECK(colours.size() > 100);
      CHECK(colours.size() <= 256);
    }
    INFO("shared " << shared);
    CHECK(std::sqrt(squares / (3 * 3 * 64 * 48)) < 8);
    CHECK(worst < 48);
  }
}

TEST_CASE("a film plays its frames with the query outlined in its own") {
  const TemporaryFolder folder;
  QueryVolumes volumes;
  volumes.grid = {3, 4, 5};
  volumes.capture = "dump";
  volumes.domain = "all";
  volumes.query_text = "query 1,2,3";
  for (int v = 0; v < 2; ++v) {
    QueryVolume volume;
    volume.label = "step 10 layer 3 head " + std::to_string(v);
    for (int i = 0; i < 60; ++i) volume.video.push_back(std::exp2(-0.1f * static_cast<float>(i)));
    volume.query = std::array<int64_t, 3>{1, 2, 3};
    volumes.volumes.push_back(volume);
  }
  write_animation(volumes, {}, folder / "f.gif", false);
  const Animation read = read_gif(folder / "f.gif");
  const FilmAnimation film(volumes);
  REQUIRE(read.images.size() == 3);
  REQUIRE(read.width == film.width());
  REQUIRE(read.height == film.height());
  const ColourScale scale = ColourScale::fit({}, volumes.volumes[0].video);
  for (size_t t = 0; t < 3; ++t) {
    for (size_t v = 0; v < 2; ++v) {
      const FrameCells cells = film.cells(v);
      for (int n = 0; n < 20; ++n) {
        const PixelRect at = cells.at(n / 5, n % 5);
        const Rgb expected =
            scale.colour(volumes.volumes[v].video[t * 20 + static_cast<size_t>(n)]);
        CHECK(same(read.at(t, at.x + at.width / 2, at.y + at.height / 2), expected));
      }
      const PixelRect query = cells.at(2, 3);
      CHECK(same(read.at(t, query.x - 1, query.y + 5), kDark.query) == (t == 1));
    }
  }
  // The frames' numbers differ.
  CHECK(read.images[0] != read.images[1]);
  CHECK(read.delays == std::vector<int>(3, 40));
  write_animation(volumes, {}, folder / "f.gif", true, 10);
  CHECK(read_gif(folder / "f.gif").delays == std::vector<int>(3, 10));
  volumes.volumes.resize(17, volumes.volumes.front());
  CHECK_THROWS_AS(write_animation(volumes, {}, folder / "many.gif", false), Error);
  CHECK_FALSE(std::filesystem::exists(folder / "many.gif"));
}

TEST_CASE("an animation that cannot be written leaves nothing") {
  const TemporaryFolder folder;
  const auto draw = [](int i) { return Canvas(10 + i, 10, {0, 0, 0}); };
  CHECK_THROWS_AS(write_gif(3, draw, {}, folder / "a.gif", false), Error);
  const auto small = [](int) { return Canvas(10, 10, {0, 0, 0}); };
  CHECK_THROWS_AS(write_gif(2, small, {}, folder / "none/a.gif", false), Error);
  CHECK_THROWS_AS(write_gif(
                      2,
                      [](int) {
                        return Canvas(70000, 1, {0, 0, 0});
                      },
                      {}, folder / "w.gif", false),
                  Error);
  int entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.path())) {
    ++entries;
  }
  CHECK(entries == 0);
}
