#include <png.h>

#include <cmath>

#include "core/base/error.h"
#include "io/pictures/film/film_frame.h"
#include "io/pictures/grey_image.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/png_reader.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const PictureStyle kDark;

/// Writes any colour type, depth and interlacing with libpng's own defaults.
void write_any(const std::string& path, int width, int height, int type, int depth, int interlace,
               const std::vector<std::vector<uint8_t>>& rows) {
  FILE* file = fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth,
               type, interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const std::vector<png_color> palette{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {255, 255, 255}};
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), 4);
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (const auto& row : rows) pointers.push_back(const_cast<png_bytep>(row.data()));
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  fclose(file);
}

/// A PNG whose header claims this size.
std::string claiming(const std::string& bytes, uint32_t width, uint32_t height) {
  std::string changed = bytes;
  for (int i = 0; i < 4; ++i) {
    changed[static_cast<size_t>(16 + i)] = static_cast<char>(width >> (24 - 8 * i));
    changed[static_cast<size_t>(20 + i)] = static_cast<char>(height >> (24 - 8 * i));
  }
  uint32_t crc = 0xffffffff;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<uint8_t>(changed[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  crc = ~crc;
  for (int i = 0; i < 4; ++i)
    changed[static_cast<size_t>(29 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  return changed;
}

}  // namespace

TEST_CASE("pictures of every type are read as grey") {
  const TemporaryFolder folder;
  Canvas canvas(3, 2, {0, 0, 0});
  canvas.fill({1, 0, 1, 1}, {255, 255, 255});
  canvas.fill({2, 0, 1, 1}, {100, 100, 100});
  canvas.fill({0, 1, 1, 1}, {255, 0, 0});
  canvas.fill({1, 1, 1, 1}, {0, 255, 0});
  canvas.fill({2, 1, 1, 1}, {0, 0, 255});
  write_picture(canvas, {}, "", folder / "rgb.png", false);
  const GreyImage rgb = read_png_grey(folder / "rgb.png");
  REQUIRE(rgb.width == 3);
  REQUIRE(rgb.height == 2);
  CHECK(rgb.pixels[0] == 0);
  CHECK(rgb.pixels[1] == 255);
  CHECK(rgb.pixels[2] == 100);
  CHECK(std::abs(rgb.pixels[3] - 54) <= 1);
  CHECK(std::abs(rgb.pixels[4] - 182) <= 1);
  CHECK(std::abs(rgb.pixels[5] - 18) <= 1);
  for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
    write_any(folder / "g16.png", 2, 2, PNG_COLOR_TYPE_GRAY, 16, interlace,
              {{0x12, 0x00, 0xab, 0x00}, {0xff, 0xff, 0x80, 0x00}});
    CHECK(read_png_grey(folder / "g16.png").pixels == std::vector<uint8_t>{0x12, 0xab, 0xff, 0x80});
    write_any(folder / "g1.png", 9, 1, PNG_COLOR_TYPE_GRAY, 1, interlace, {{0xa5, 0x80}});
    CHECK(read_png_grey(folder / "g1.png").pixels ==
          std::vector<uint8_t>{255, 0, 255, 0, 0, 255, 0, 255, 255});
    write_any(folder / "pal.png", 4, 1, PNG_COLOR_TYPE_PALETTE, 8, interlace, {{0, 1, 2, 3}});
    const GreyImage palette = read_png_grey(folder / "pal.png");
    REQUIRE(palette.pixels.size() == 4);
    CHECK(std::abs(palette.pixels[1] - 182) <= 1);
    CHECK(palette.pixels[3] == 255);
    write_any(folder / "rgba.png", 1, 1, PNG_COLOR_TYPE_RGBA, 8, interlace, {{90, 90, 90, 3}});
    CHECK(read_png_grey(folder / "rgba.png").pixels == std::vector<uint8_t>{90});
  }
}

TEST_CASE("files that are no sound PNG are refused by name") {
  const TemporaryFolder folder;
  const std::string path = folder / "p.png";
  Canvas canvas(40, 30, {1, 2, 3});
  for (int i = 0; i < 40; ++i) canvas.fill({i, i % 30, 1, 1}, {static_cast<uint8_t>(i * 6), 9, 90});
  write_picture(canvas, {}, "", path, false);
  const std::string good = read_bytes(path);
  const auto refuses = [&](const std::string& bytes, const std::string& part) {
    write_bytes(path, bytes);
    return refused([&] { read_png_grey(path); }, ErrorCode::file, {"p.png", part});
  };
  CHECK(refuses("", "PNG") == "");
  CHECK(refuses("GIF89a and more of it", "signature") == "");
  for (size_t length = 8; length < good.size(); length += 7) {
    INFO(length);
    CHECK(refuses(good.substr(0, length), "") == "");
  }
  for (size_t at = 8; at < good.size() - 12; at += 5) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    write_bytes(path, flipped);
    INFO(at);
    // libpng takes some damage for an ancillary chunk; the picture is whole or an error.
    try {
      const GreyImage image = read_png_grey(path);
      CHECK(image.pixels.size() == 40 * 30);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::file);
    }
  }
  CHECK(refuses(claiming(good, 2000000000, 2000000000), "2000000000") == "");
  CHECK(refuses(claiming(good, 8000, 8000), "too many") == "");
  CHECK(refuses(claiming(good, 9000, 1), "too many") == "");
  CHECK(refuses(claiming(good, 0, 5), "") == "");
  CHECK(refuses(claiming(good, 41, 30), "") == "");
  CHECK(refused([&] { read_png_grey(folder.path()); }, ErrorCode::file, {}) == "");
  CHECK(refused([&] { read_png_grey(folder / "none.png"); }, ErrorCode::file, {"none.png"}) == "");
}

TEST_CASE("pictures are stretched by means and by repetition") {
  const GreyImage image{4, 2, {0, 10, 20, 30, 40, 50, 60, 70}};
  CHECK(resized(image, 2, 1).pixels == std::vector<uint8_t>{25, 45});
  CHECK(resized(image, 8, 2).pixels ==
        std::vector<uint8_t>{0, 0, 10, 10, 20, 20, 30, 30, 40, 40, 50, 50, 60, 60, 70, 70});
  CHECK(resized(image, 4, 2).pixels == image.pixels);
  CHECK(resized(image, 3, 1).pixels.size() == 3);
}

TEST_CASE("the smaller the weight, the more is seen of the video") {
  const ColourScale scale(Colormap::grey, ScaleKind::linear, {0, 1});
  CHECK(overlaid(100, 0, scale) == Rgb{85, 85, 85});
  CHECK(overlaid(100, 1, scale) == Rgb{232, 232, 232});
  const GreyImage video{2, 1, {0, 200}};
  Canvas canvas(40, 20, kDark.background);
  const std::vector<float> weights{0, 0, 1, 1};
  draw_frame_cells(canvas, {4, 4, 2, 2, 8}, weights, scale, &video);
  CHECK(canvas.at(4, 4) == Rgb{0, 0, 0});
  CHECK(canvas.at(19, 11) == Rgb{170, 170, 170});
  CHECK(canvas.at(4, 12) == Rgb{217, 217, 217});
  CHECK(canvas.at(19, 19) == Rgb{247, 247, 247});
  CHECK(canvas.at(20, 4) == kDark.background);
}

TEST_CASE("cells that have no weight are hatched, with a video and without") {
  const ColourScale scale(Colormap::grey, ScaleKind::linear, {0, 1});
  const GreyImage video{2, 1, {0, 200}};
  const std::vector<float> weights{1, 1};
  const std::vector<uint8_t> absent{0, 1};
  for (const GreyImage* under : {static_cast<const GreyImage*>(nullptr), &video}) {
    Canvas canvas(40, 20, kDark.background);
    draw_frame_cells(canvas, {4, 4, 1, 2, 8}, weights, scale, under, {}, absent);
    int stripes = 0, ground = 0;
    for (int y = 4; y < 12; ++y) {
      for (int x = 12; x < 20; ++x) {
        stripes += canvas.at(x, y) == kDark.empty_hatch ? 1 : 0;
        ground += canvas.at(x, y) == kDark.masked_cell ? 1 : 0;
      }
      CHECK_FALSE(canvas.at(4, y) == kDark.empty_hatch);
      CHECK_FALSE(canvas.at(4, y) == kDark.masked_cell);
    }
    CHECK(stripes + ground == 64);
    CHECK((stripes > 10 && ground > 30));
  }
}
