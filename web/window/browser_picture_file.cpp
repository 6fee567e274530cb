#include "web/window/browser.h"

#include "core/base/error.h"
#include "viewer/app/picture_file.h"

// Pictures of the window as downloads: in place of viewer/app/picture_file.cpp.

namespace attnscope {

void check_picture_name(const std::filesystem::path& file) {
  if (file.extension() == ".png") return;
  throw usage_error(one_line(file.string()) + ": pictures of the window are .png files");
}

void write_picture(const gl::ReadPixels& picture, const std::filesystem::path& file, bool,
                   std::span<const std::filesystem::path>) {
  check_picture_name(file);
  static_assert(sizeof(Rgb) == 3);
  browser_save_picture(file.filename().c_str(),
                       reinterpret_cast<const unsigned char*>(picture.pixels.data()), picture.width,
                       picture.height);
}

}  // namespace attnscope
