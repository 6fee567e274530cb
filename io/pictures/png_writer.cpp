#include "io/pictures/png_writer.h"

#include <png.h>

#include <new>

#include "io/pictures/png_guard.h"

namespace attnscope {

struct PngWriter::Impl {
  explicit Impl(PartFile& the_file) : file(the_file), guard(the_file.part_path()) {}
  ~Impl() { png_destroy_write_struct(&png, &info); }

  PartFile& file;
  PngGuard guard;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

namespace {

template <typename Impl>
void write_bytes(png_structp png, png_bytep data, png_size_t length) {
  auto* impl = static_cast<Impl*>(png_get_io_ptr(png));
  impl->guard.called_back(png, [&] {
    impl->file.append({reinterpret_cast<const std::byte*>(data), length});
  });
}

void flush_nothing(png_structp) {}

}  // namespace

PngWriter::PngWriter(PartFile& file, int width, int height) : impl_(std::make_unique<Impl>(file)) {
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
