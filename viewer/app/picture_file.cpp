#include "viewer/app/picture_file.h"

#include "core/base/error.h"
#include "io/pictures/png_writer.h"

namespace attnscope {

void check_picture_name(const std::filesystem::path& file) {
  if (file.extension() == ".png") return;
  throw usage_error(one_line(file.string()) + ": pictures of the window are .png files");
}

void write_picture(const gl::ReadPixels& picture, const std::filesystem::path& file, bool force,
                   std::span<const std::filesystem::path> inputs) {
  check_picture_name(file);
  OutputFile::check_target(file, {.force = force, .inputs = inputs});
  StagedFile part(file, force);
  PngWriter writer(part, picture.width, picture.height);
  const auto width = static_cast<size_t>(picture.width);
  for (size_t y = 0; y < static_cast<size_t>(picture.height); ++y) {
    writer.write_row(std::span(picture.pixels).subspan(y * width, width));
  }
  writer.finish();
  part.commit();
}

}  // namespace attnscope
