#include "viewer/gl/shader_program.h"

#include <array>

#include "core/base/error.h"

namespace attnscope::gl {
namespace {

ShaderName compile(const std::string& name, GLenum kind, const std::string& source) {
  ShaderName shader(glCreateShader(kind));
  const char* text = source.c_str();
  glShaderSource(shader.get(), 1, &text, nullptr);
  glCompileShader(shader.get());
  GLint done = GL_FALSE;
  glGetShaderiv(shader.get(), GL_COMPILE_STATUS, &done);
  if (done == GL_TRUE) return shader;
  std::array<char, 1024> log{};
  glGetShaderInfoLog(shader.get(), static_cast<GLsizei>(log.size()), nullptr, log.data());
  throw Error(ErrorCode::unavailable,
              "OpenGL: shader " + name + " does not compile: " + one_line(log.data()));
}

}  // namespace

ShaderProgram::ShaderProgram(const std::string& name, const std::string& vertex,
                             const std::string& fragment)
    : program_(glCreateProgram()) {
  const ShaderName vertex_shader = compile(name + ".vert", GL_VERTEX_SHADER, vertex);
  const ShaderName fragment_shader = compile(name + ".frag", GL_FRAGMENT_SHADER, fragment);
  glAttachShader(program_.get(), vertex_shader.get());
  glAttachShader(program_.get(), fragment_shader.get());
  glLinkProgram(program_.get());
  GLint done = GL_FALSE;
  glGetProgramiv(program_.get(), GL_LINK_STATUS, &done);
  if (done != GL_TRUE) {
    std::array<char, 1024> log{};
    glGetProgramInfoLog(program_.get(), static_cast<GLsizei>(log.size()), nullptr, log.data());
    throw Error(ErrorCode::unavailable,
                "OpenGL: program " + name + " does not link: " + one_line(log.data()));
  }
  check("shader program");
}

}  // namespace attnscope::gl
