#include "viewer/gl/gl_check.h"

#include <fmt/core.h>

#include "core/base/error.h"

namespace attnscope::gl {

#ifdef __EMSCRIPTEN__
void check(const char*) {}
#else
void check(const char* what) {
  const GLenum first = glGetError();
  if (first == GL_NO_ERROR) return;
  // A lost context reports errors for ever.
  for (int i = 0; i < 16 && glGetError() != GL_NO_ERROR; ++i) {
  }
  const ErrorCode code = first == GL_OUT_OF_MEMORY ? ErrorCode::resource : ErrorCode::unavailable;
  throw Error(code, fmt::format("OpenGL: {}: {}", what,
                                first == GL_OUT_OF_MEMORY ? std::string("out of memory")
                                                          : fmt::format("error 0x{:04x}", first)));
}
#endif

}  // namespace attnscope::gl
