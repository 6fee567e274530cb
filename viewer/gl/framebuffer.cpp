#include "viewer/gl/framebuffer.h"

#include <cstdint>
#include <span>

#include "core/base/error.h"
#include "viewer/gl/gl_name.h"

namespace attnscope::gl {
namespace {

GLuint new_framebuffer() {
  GLuint name = 0;
  glGenFramebuffers(1, &name);
  return name;
}

}  // namespace

ReadPixels read_bound_framebuffer(int width, int height) {
  ReadPixels picture{width, height, {}};
  const size_t columns = static_cast<size_t>(width);
  // Four bytes a pixel, which every driver gives; three are not for all.
  struct Rgba {
    uint8_t r, g, b, a;
  };
  std::vector<Rgba> upside_down(columns * static_cast<size_t>(height));
  glPixelStorei(GL_PACK_ALIGNMENT, 4);
  glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, upside_down.data());
  check("reading a picture back");
  picture.pixels.reserve(upside_down.size());
  for (size_t y = static_cast<size_t>(height); y-- > 0;) {
    for (const Rgba& p : std::span(upside_down).subspan(y * columns, columns)) {
      picture.pixels.push_back({p.r, p.g, p.b});
    }
  }
  return picture;
}

Framebuffer::Framebuffer(int width, int height)
    : width_(width), height_(height), colour_(new_texture()), framebuffer_(new_framebuffer()) {
  glBindTexture(GL_TEXTURE_2D, colour_.get());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glBindTexture(GL_TEXTURE_2D, 0);
  bind();
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, colour_.get(), 0);
  const GLenum state = glCheckFramebufferStatus(GL_FRAMEBUFFER);
  unbind();
  check("framebuffer");
  if (state != GL_FRAMEBUFFER_COMPLETE) {
    throw Error(ErrorCode::unavailable, "OpenGL: the driver makes no RGBA8 framebuffer");
  }
}

void Framebuffer::bind() const { glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_.get()); }

void Framebuffer::unbind() { glBindFramebuffer(GL_FRAMEBUFFER, 0); }

ReadPixels Framebuffer::read() const {
  bind();
  ReadPixels picture = read_bound_framebuffer(width_, height_);
  unbind();
  return picture;
}

void Framebuffer::show_in_window() const {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_.get());
  glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  glBlitFramebuffer(0, 0, width_, height_, 0, 0, width_, height_, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  unbind();
}

}  // namespace attnscope::gl
