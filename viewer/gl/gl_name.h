#pragma once

#include <utility>

#include "viewer/gl/gl_check.h"

namespace attnscope::gl {

/// Owns the name of one OpenGL object; Release deletes it. Movable. Lives and dies on the thread
/// whose context is current.
template <void (*Release)(GLuint)>
class Name {
 public:
  Name() = default;
  explicit Name(GLuint name) : name_(name) {}
  Name(Name&& other) noexcept : name_(std::exchange(other.name_, 0)) {}
  Name& operator=(Name&& other) noexcept {
    std::swap(name_, other.name_);
    return *this;
  }
  ~Name() {
    if (name_ != 0) Release(name_);
  }
  GLuint get() const { return name_; }

 private:
  GLuint name_ = 0;
};

inline void release_texture(GLuint name) { glDeleteTextures(1, &name); }
inline void release_buffer(GLuint name) { glDeleteBuffers(1, &name); }
inline void release_vertex_array(GLuint name) { glDeleteVertexArrays(1, &name); }
inline void release_framebuffer(GLuint name) { glDeleteFramebuffers(1, &name); }
inline void release_program(GLuint name) { glDeleteProgram(name); }
inline void release_shader(GLuint name) { glDeleteShader(name); }

/// A new texture's name.
inline GLuint new_texture() {
  GLuint name = 0;
  glGenTextures(1, &name);
  return name;
}

/// A new vertex array's name.
inline GLuint new_vertex_array() {
  GLuint name = 0;
  glGenVertexArrays(1, &name);
  return name;
}

using TextureName = Name<release_texture>;
using BufferName = Name<release_buffer>;
using VertexArrayName = Name<release_vertex_array>;
using FramebufferName = Name<release_framebuffer>;
using ProgramName = Name<release_program>;
using ShaderName = Name<release_shader>;

}  // namespace attnscope::gl
