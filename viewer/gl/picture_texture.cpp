#include "viewer/gl/picture_texture.h"

#include "viewer/gl/gl_check.h"

namespace attnscope::gl {

void PictureTexture::resize(int width, int height) {
  if (width == width_ && height == height_) return;
  if (texture_.get() == 0) {
    GLuint name = 0;
    glGenTextures(1, &name);
    texture_ = TextureName(name);
  }
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, width, height, 0, GL_RGB, GL_UNSIGNED_BYTE, nullptr);
  width_ = width;
  height_ = height;
  check("a texture of pictures");
}

void PictureTexture::update(int x, int y, const Canvas& picture) {
  static_assert(sizeof(Rgb) == 3);
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexSubImage2D(GL_TEXTURE_2D, 0, x, y, picture.width(), picture.height(), GL_RGB,
                  GL_UNSIGNED_BYTE, picture.row(0).data());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  check("a picture's upload");
}

}  // namespace attnscope::gl
