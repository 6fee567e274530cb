#include "viewer/gl/kept_drawing.h"

namespace attnscope::gl {

void KeptDrawing::take(int x, int y, int width, int height) {
  if (texture_.get() == 0) texture_ = TextureName(new_texture());
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  if (width != width_ || height != height_) {
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, width, height, 0, GL_RGB, GL_UNSIGNED_BYTE, nullptr);
  }
  glCopyTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, x, y, width, height);
  check("keeping what was drawn");
  x_ = x;
  y_ = y;
  width_ = width;
  height_ = height;
}

}  // namespace attnscope::gl
