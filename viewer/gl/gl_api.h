#pragma once

// OpenGL as it is where the window runs: 3.3 on a desktop, WebGL 2 (OpenGL ES 3.0) in a browser.
#ifdef __EMSCRIPTEN__
#include <GLES3/gl3.h>
#else
#include <epoxy/gl.h>
#endif

namespace attnscope::gl {

/// The first lines of every shader; bodies are the same for both languages.
#ifdef __EMSCRIPTEN__
inline constexpr const char* kShaderVersion = "#version 300 es";
inline constexpr const char* kShaderHead =
    "#version 300 es\n"
    "precision highp float;\nprecision highp int;\nprecision highp sampler2D;\n"
    "precision highp sampler2DArray;\nprecision highp usampler3D;\n";
#else
inline constexpr const char* kShaderVersion = "#version 330 core";
inline constexpr const char* kShaderHead = "#version 330 core\n";
#endif

}  // namespace attnscope::gl
