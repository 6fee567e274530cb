#include "io/pictures/png_reader.h"

#include <fmt/core.h>
#include <png.h>

#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

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

enum class Channels : uint8_t { grey = 1, colour = 3 };

/// Everything becomes one byte a channel.
void convert_pixels(png_structp png, png_infop info, Channels channels) {
  png_set_expand(png);
  png_set_strip_16(png);
  const bool coloured = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0;
  if (channels == Channels::colour) {
    png_set_gray_to_rgb(png);
  } else if (coloured) {
    constexpr double kRed = 0.2126;
    constexpr double kGreen = 0.7152;
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, kRed, kGreen);
  }
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

struct Pixels {
  size_t width = 0, height = 0;
  std::vector<uint8_t> bytes;
};

Pixels read_pixels(const InputFile& file, Channels channels) {
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
  reading.guard.guarded(png, [&] { convert_pixels(png, info, channels); });
  const size_t row_bytes = size_t{width} * static_cast<size_t>(channels);
  if (png_get_rowbytes(png, info) != row_bytes) {
    throw reading.error(channels == Channels::grey ? "cannot be turned into grey"
                                                   : "cannot be turned into red, green and blue");
  }
  Pixels pixels{width, height, std::vector<uint8_t>(row_bytes * height)};
  std::vector<png_bytep> rows(height);
  for (size_t y = 0; y < height; ++y) rows[y] = pixels.bytes.data() + y * row_bytes;
  reading.guard.guarded(png, [&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
  return pixels;
}

}  // namespace

GreyImage read_png_grey(const std::filesystem::path& path) {
  return read_png_grey(InputFile(path));
}

GreyImage read_png_grey(const InputFile& file) {
  Pixels pixels = read_pixels(file, Channels::grey);
  return {static_cast<int>(pixels.width), static_cast<int>(pixels.height), std::move(pixels.bytes)};
}

Canvas read_png_colour(const std::filesystem::path& path) {
  const Pixels pixels = read_pixels(InputFile(path), Channels::colour);
  Canvas canvas(static_cast<int>(pixels.width), static_cast<int>(pixels.height), Rgb{});
  static_assert(sizeof(Rgb) == 3);
  const size_t row_bytes = pixels.width * sizeof(Rgb);
  for (size_t y = 0; y < pixels.height; ++y) {
    std::memcpy(canvas.row(static_cast<int>(y)).data(), pixels.bytes.data() + y * row_bytes,
                row_bytes);
  }
  return canvas;
}

}  // namespace attnscope
