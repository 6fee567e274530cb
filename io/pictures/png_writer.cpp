#include "io/pictures/png_writer.h"

#include <png.h>

#include <cmath>
#include <new>
#include <utility>

#include "io/pictures/png_guard.h"

namespace attnscope {

struct PngWriter::Impl {
  Impl(Put the_put, const std::filesystem::path& name) : put(std::move(the_put)), guard(name) {}
  ~Impl() { png_destroy_write_struct(&png, &info); }

  Put put;
  PngGuard guard;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

namespace {

template <typename Impl>
void write_bytes(png_structp png, png_bytep data, png_size_t length) {
  auto* impl = static_cast<Impl*>(png_get_io_ptr(png));
  impl->guard.called_back(png, [&] {
    impl->put({reinterpret_cast<const std::byte*>(data), length});
  });
}

void flush_nothing(png_structp) {}

}  // namespace

PngWriter::PngWriter(StagedFile& file, int width, int height, double dpi)
    : PngWriter([&file](std::span<const std::byte> bytes) { file.append(bytes); }, file.part_path(),
                width, height, dpi) {}

PngWriter::PngWriter(Put put, const std::filesystem::path& name, int width, int height, double dpi)
    : impl_(std::make_unique<Impl>(std::move(put), name)) {
  Impl& impl = *impl_;
  impl.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &impl.guard, PngGuard::keep_error,
                                     PngGuard::ignore_warning);
  if (impl.png != nullptr) impl.info = png_create_info_struct(impl.png);
  if (impl.info == nullptr) throw std::bad_alloc();
  png_set_write_fn(impl.png, &impl, write_bytes<Impl>, flush_nothing);
  impl.guard.guarded(impl.png, [&] {
    png_set_IHDR(impl.png, impl.info, static_cast<png_uint_32>(width),
                 static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (dpi > 0) {
      const auto a_metre = static_cast<png_uint_32>(std::lround(dpi / 0.0254));
      png_set_pHYs(impl.png, impl.info, a_metre, a_metre, PNG_RESOLUTION_METER);
    }
    // Flat areas, and letters and cells that occur again, pack best as they are.
    png_set_filter(impl.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_write_info(impl.png, impl.info);
  });
}

PngWriter::~PngWriter() = default;

void PngWriter::write_row(std::span<const Rgb> row) {
  static_assert(sizeof(Rgb) == 3);
  impl_->guard.guarded(impl_->png, [&] {
    png_write_row(impl_->png, reinterpret_cast<png_const_bytep>(row.data()));
  });
}

void PngWriter::finish() {
  impl_->guard.guarded(impl_->png, [&] { png_write_end(impl_->png, nullptr); });
}

}  // namespace attnscope
