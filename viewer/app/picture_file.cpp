#include "viewer/app/picture_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/pictures/picture_page.h"
#include "io/pictures/png_writer.h"

namespace attnscope {

bool is_page_name(const std::filesystem::path& file) {
  const std::vector<std::string_view> endings = picture_endings();
  return std::find(endings.begin(), endings.end(), file.extension().string()) != endings.end();
}

PictureStyle page_style(const std::filesystem::path& file, bool light) {
  const bool vector = is_vector_name(file);
  PictureStyle style = picture_style(vector  ? StyleName::paper
                                     : light ? StyleName::slide
                                             : StyleName::dark);
  style.vector = vector;
  return style;
}

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
