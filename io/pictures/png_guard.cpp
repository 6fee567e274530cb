#include "io/pictures/png_guard.h"

#include "core/base/error.h"

namespace attnscope {

void PngGuard::keep_error(png_structp png, png_const_charp message) {
  static_cast<PngGuard*>(png_get_error_ptr(png))->failure_ = message;
  longjmp(png_jmpbuf(png), 1);
}

void PngGuard::ignore_warning(png_structp, png_const_charp) {}

void PngGuard::fail() const {
  if (thrown_) std::rethrow_exception(thrown_);
  throw file_error(file_, "PNG", failure_);
}

}  // namespace attnscope
