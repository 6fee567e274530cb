#pragma once

#include <string>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// A vertex and a fragment shader, compiled and linked. Only on the context's thread.
class ShaderProgram {
 public:
  /// Throws Error(unavailable) with `name` and the driver's log when the sources do not compile.
  ShaderProgram(const std::string& name, const std::string& vertex, const std::string& fragment);

  void use() const { glUseProgram(program_.get()); }
  /// The place of a uniform, −1 where the linker dropped it.
  GLint uniform(const char* name) const { return glGetUniformLocation(program_.get(), name); }

 private:
  ProgramName program_;
};

}  // namespace attnscope::gl
