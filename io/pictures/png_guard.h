#pragma once

#include <png.h>

#include <csetjmp>
#include <exception>
#include <filesystem>
#include <string>

namespace attnscope {

/// Between C++ and libpng, which reports errors by longjmp: no destructor may be jumped over, and
/// no exception may pass through libpng's frames. One for each png_struct, as its error pointer.
///
/// libpng's simplified interface would need no jumps. But it reads values as light: it undoes gamma
/// before it makes grey, blends with alpha and rescales 16 bits, where pictures here are read as
/// the numbers that are stored; and it names no sizes where it refuses one.
class PngGuard {
 public:
  /// `file` is how messages call the picture.
  explicit PngGuard(const std::filesystem::path& file) : file_(file.string()) {}

  /// Runs calls of libpng; `call` must own nothing. Throws what a callback threw, else Error(file)
  /// "FILE: PNG: …" in libpng's words.
  template <typename F>
  void guarded(png_structp png, const F& call) {
    if (setjmp(png_jmpbuf(png)) != 0) fail();
    call();
  }

  /// Runs the inside of a callback of libpng, whose exceptions are kept for guarded().
  template <typename F>
  void called_back(png_structp png, const F& call) {
    try {
      call();
      return;
    } catch (...) {
      thrown_ = std::current_exception();
    }
    png_error(png, "");
  }

  /// For png_create_read_struct and png_create_write_struct.
  static void keep_error(png_structp png, png_const_charp message);
  static void ignore_warning(png_structp png, png_const_charp message);

 private:
  [[noreturn]] void fail() const;

  std::string file_;
  std::string failure_;        ///< libpng's words
  std::exception_ptr thrown_;  ///< by a callback
};

}  // namespace attnscope
