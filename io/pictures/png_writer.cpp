#include "io/pictures/png_writer.h"

#include <png.h>

#include <csetjmp>
#include <exception>
#include <string>

namespace attnscope {

struct PngWriter::Impl {
  explicit Impl(StagedFile& the_file) : file(the_file) {}
  ~Impl() { png_destroy_write_struct(&png, &info); }

  StagedFile& file;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string failure;        ///< libpng's words
  std::exception_ptr thrown;  ///< by the file

  /// Runs a call of libpng, which reports errors by longjmp: `call` must own nothing.
  template <typename F>
  void guarded(const F& call) {
    if (setjmp(png_jmpbuf(png)) == 0) {
      call();
      return;
    }
    if (thrown) std::rethrow_exception(thrown);
    throw file_error(file.part_path().string(), "PNG", failure);
  }
};

namespace {

// C++ exceptions must not pass through libpng's frames: they are kept, and libpng jumps.
template <typename Impl>
void write_bytes(png_structp png, png_bytep data, png_size_t length) {
  auto* impl = static_cast<Impl*>(png_get_io_ptr(png));
  try {
    impl->file.append({reinterpret_cast<const std::byte*>(data), length});
    return;
  } catch (...) {
    impl->thrown = std::current_exception();
  }
  png_error(png, "write failed");
}

template <typename Impl>
void keep_error(png_structp png, png_const_charp message) {
  static_cast<Impl*>(png_get_error_ptr(png))->failure = message;
  longjmp(png_jmpbuf(png), 1);
}

void ignore_warning(png_structp, png_const_charp) {}
void flush_nothing(png_structp) {}

}  // namespace

PngWriter::PngWriter(StagedFile& file, int width, int height)
    : impl_(std::make_unique<Impl>(file)) {
  Impl& impl = *impl_;
  impl.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &impl, keep_error<Impl>, ignore_warning);
  if (impl.png != nullptr) impl.info = png_create_info_struct(impl.png);
  if (impl.info == nullptr) throw std::bad_alloc();
  png_set_write_fn(impl.png, &impl, write_bytes<Impl>, flush_nothing);
  impl.guarded([&] {
    png_set_IHDR(impl.png, impl.info, static_cast<png_uint_32>(width),
                 static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    // Flat areas and repeated rows pack best unfiltered or by difference to the row above.
    png_set_filter(impl.png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE | PNG_FILTER_UP);
    png_write_info(impl.png, impl.info);
  });
}

PngWriter::~PngWriter() = default;

void PngWriter::write_row(std::span<const Rgb> row) {
  static_assert(sizeof(Rgb) == 3);
  impl_->guarded([&] { png_write_row(impl_->png, reinterpret_cast<png_const_bytep>(row.data())); });
}

void PngWriter::finish() {
  impl_->guarded([&] { png_write_end(impl_->png, nullptr); });
}

}  // namespace attnscope
