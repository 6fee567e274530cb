// Textures of OpenGL for the emulated CUDA; linked into what has a window, and there from the
// start.
#include <epoxy/gl.h>
#include <epoxy/glx.h>

#include "tests/cuda/emulation/graphics.h"

namespace attnscope::cuda::emulation {
namespace {

/// Binds a texture array; what was bound is bound again at the end.
class Bound {
 public:
  explicit Bound(unsigned texture) {
    glGetIntegerv(GL_TEXTURE_BINDING_2D_ARRAY, &before_);
    glBindTexture(GL_TEXTURE_2D_ARRAY, texture);
  }
  ~Bound() { glBindTexture(GL_TEXTURE_2D_ARRAY, static_cast<GLuint>(before_)); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  GLint before_ = 0;
};

std::optional<TextureShape> shape_of(unsigned texture, unsigned target) {
  if (target != GL_TEXTURE_2D_ARRAY || glIsTexture(texture) == GL_FALSE) return std::nullopt;
  const Bound bound(texture);
  const auto level = [&](GLenum what) {
    GLint value = 0;
    glGetTexLevelParameteriv(target, 0, what, &value);
    return static_cast<std::size_t>(value);
  };
  if (level(GL_TEXTURE_INTERNAL_FORMAT) != GL_RG16F) return std::nullopt;
  return TextureShape{level(GL_TEXTURE_WIDTH), level(GL_TEXTURE_HEIGHT), level(GL_TEXTURE_DEPTH),
                      4};
}

/// CUDA leaves OpenGL's state alone.
void write(unsigned texture, unsigned target, const TextureRect& rect, const void* texels) {
  const Bound bound(texture);
  GLint alignment = 0;
  glGetIntegerv(GL_UNPACK_ALIGNMENT, &alignment);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
  glTexSubImage3D(target, 0, static_cast<GLint>(rect.x), static_cast<GLint>(rect.y),
                  static_cast<GLint>(rect.layer), static_cast<GLsizei>(rect.width),
                  static_cast<GLsizei>(rect.height), 1, GL_RG, GL_HALF_FLOAT, texels);
  glPixelStorei(GL_UNPACK_ALIGNMENT, alignment);
}

[[maybe_unused]] const bool set = [] {
  set_graphics(opengl_graphics());
  return true;
}();

}  // namespace

Graphics opengl_graphics() {
  return {[] { return glXGetCurrentContext() != nullptr; }, shape_of, write};
}

}  // namespace attnscope::cuda::emulation
