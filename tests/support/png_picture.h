#pragma once

#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/pictures/colormap.h"
#include "tests/support/catch.h"

namespace attnscope::test {

/// A picture as libpng reads it back.
struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
  Rgb at(int x, int y) const {
    const size_t i = (static_cast<size_t>(y) * width + static_cast<size_t>(x)) * 3;
    return {pixels[i], pixels[i + 1], pixels[i + 2]};
  }
};

inline Picture read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  image.format = PNG_FORMAT_RGB;
  Picture picture{image.width, image.height, {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) != 0);
  return picture;
}

}  // namespace attnscope::test
