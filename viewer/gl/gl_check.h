#pragma once

#include "viewer/gl/gl_api.h"

namespace attnscope::gl {

/// Throws Error(unavailable), or Error(resource) where the driver is out of memory, when an OpenGL
/// call since the last check failed; `what` says what was being done. Drains all pending errors.
/// In a browser it does nothing: asking there waits for the process that draws, and what failed
/// stands in the browser's console.
void check(const char* what);

}  // namespace attnscope::gl
