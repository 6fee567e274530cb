#include "io/pictures/png_reader.h"

#include <fmt/core.h>
#include <png.h>

#include <array>
#include <new>
#include <string>

#include "core/base/error.h"
#include "io/pictures/png_guard.h"

namespace attnscope {
namespace {

/// The most that libpng may take for a chunk that is no image data.
constexpr png_alloc_size_t kMaxChunk = 4 << 20;

struct Reading {
  explicit Reading(const InputFile& the_file) : file(the_file), guard(the_file.path()) {}
  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const InputFile& file;
  int64_t offset = 0;
  PngGuard guard;
  png_structp png = nullptr;
  png_infop info = nullptr;

  Error error(const std::string& what) const {
    return file_error(file.path().string(), "PNG", what);
  }
};

void read_bytes(png_structp png, png_bytep data, png_size_t length) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(png));
  reading->guard.called_back(png, [&] {
    reading->file.read_at(reading->offset, {reinterpret_cast<std::byte*>(data), length});
    reading->offset += static_cast<int64_t>(length);
  });
}

void check_signature(Reading& reading) {
  std::array<std::byte, 8> signature{};
  if (reading.file.size() < static_cast<int64_t>(signature.size())) {
    throw reading.error(fmt::format("no PNG file ({} bytes long)", reading.file.size()));
  }
  reading.file.read_at(0, signature);
  if (png_sig_cmp(reinterpret_cast<png_const_bytep>(signature.data()), 0, signature.size()) != 0) {
    throw reading.error("no PNG file (the signature is another)");
  }
}

/// Everything becomes one byte a pixel.
void convert_to_grey(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_strip_16(png);
  if ((png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0) {
    constexpr double kRed = 0.2126;
    constexpr double kGreen = 0.7152;
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, kRed, kGreen);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

}  // namespace

GreyImage read_png_grey(const std::filesystem::path& path) {
  return read_png_grey(InputFile(path));
}

GreyImage read_png_grey(const InputFile& file) {
  Reading reading(file);
  check_signature(reading);
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading.guard, PngGuard::keep_error,
                                       PngGuard::ignore_warning);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) throw std::bad_alloc();
  png_structp png = reading.png;
  png_infop info = reading.info;
  png_set_read_fn(png, &reading, read_bytes);
  png_uint_32 width = 0;
  png_uint_32 height = 0;
  reading.guard.guarded(png, [&] {
    // Beyond the limits libpng's own words name no sizes: they are checked below.
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
    png_set_chunk_malloc_max(png, kMaxChunk);
    png_read_info(png, info);
    width = png_get_image_width(png, info);
    height = png_get_image_height(png, info);
  });
  if (width > kMaxPngSide || height > kMaxPngSide || int64_t{width} * height > kMaxPngPixels) {
    throw reading.error(fmt::format("{} × {} pixels are too many (at most {} a side, {} in all)",
                                    width, height, kMaxPngSide, kMaxPngPixels));
  }
  reading.guard.guarded(png, [&] { convert_to_grey(png, info); });
  if (png_get_rowbytes(png, info) != width) throw reading.error("cannot be turned into grey");
  GreyImage image{static_cast<int>(width), static_cast<int>(height), {}};
  image.pixels.resize(static_cast<size_t>(width) * height);
  std::vector<png_bytep> rows(height);
  for (size_t y = 0; y < height; ++y) rows[y] = image.pixels.data() + y * width;
  reading.guard.guarded(png, [&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
  return image;
}

}  // namespace attnscope
