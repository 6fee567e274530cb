#include "viewer/gl/block_texture.h"

#include "viewer/gl/gl_check.h"

namespace attnscope::gl {

void BlockTexture::upload(int rows, int cols, std::span<const uint32_t> colours) {
  if (texture_.get() == 0) {
    GLuint name = 0;
    glGenTextures(1, &name);
    texture_ = TextureName(name);
  }
  glBindTexture(GL_TEXTURE_2D, texture_.get());
  // Where blocks are smaller than pixels, what is seen is their mean.
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, cols, rows, 0, GL_RGBA, GL_UNSIGNED_BYTE,
               colours.data());
  rows_ = rows;
  cols_ = cols;
  check("a texture of blocks");
}

}  // namespace attnscope::gl
