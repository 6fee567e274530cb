#pragma once

#include <epoxy/gl.h>

namespace attnscope::gl {

/// Throws Error(unavailable), or Error(resource) where the driver is out of memory, when an OpenGL
/// call since the last check failed; `what` says what was being done. Drains all pending errors.
void check(const char* what);

}  // namespace attnscope::gl
