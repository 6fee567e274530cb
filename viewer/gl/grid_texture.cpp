#include "viewer/gl/grid_texture.h"

namespace attnscope::gl {

void GridTexture::upload(int rows, int cols, std::span<const float> values) {
  if (texture_.get() == 0) {
    GLuint name = 0;
    glGenTextures(1, &name);
    texture_ = TextureName(name);
  }
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  if (rows != rows_ || cols != cols_) {
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_R32F, cols, rows, 0, GL_RED, GL_FLOAT, values.data());
    rows_ = rows;
    cols_ = cols;
  } else if (!values.empty()) {
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, cols, rows, GL_RED, GL_FLOAT, values.data());
  }
  ++uploads_;
  check("line upload");
}

void GridTexture::update(int row, int col, int rows, int cols, std::span<const float> values) {
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexSubImage2D(GL_TEXTURE_2D, 0, col, row, cols, rows, GL_RED, GL_FLOAT, values.data());
  ++uploads_;
  check("part of a texture");
}

int largest_texture_side() {
  GLint side = 0;
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &side);
  return side;
}

}  // namespace attnscope::gl
