#pragma once

#include <cstddef>
#include <functional>
#include <optional>

/// How the emulated CUDA gets at the textures of a window. The emulation knows no OpenGL:
/// opengl_graphics.cpp, which does, is linked where there is one.
///
/// A mapped texture's layers are arrays in host memory, full of NaN; what was copied to them is
/// written to the texture when it is unmapped, and with cudaGraphicsRegisterFlagsWriteDiscard the
/// whole texture becomes NaN when it is mapped. The program ends with a message where a copy meets
/// an array that is not mapped (when it is queued, or when it runs: nothing orders it before what
/// unmaps), where a texture is unregistered while it is mapped, and where a call comes from another
/// thread than the one that registered the texture.
namespace attnscope::cuda::emulation {

/// Level 0 of a texture.
struct TextureShape {
  std::size_t width = 0, height = 0, layers = 0;
  std::size_t texel_bytes = 0;
};

/// A rectangle of one layer of a texture.
struct TextureRect {
  unsigned layer = 0;
  std::size_t x = 0, y = 0, width = 0, height = 0;
};

struct Graphics {
  /// True where the calling thread has a context.
  std::function<bool()> has_context;
  /// None: there is no such texture, or it has a format that cannot be shared.
  std::function<std::optional<TextureShape>(unsigned texture, unsigned target)> shape;
  /// Writes packed texels.
  std::function<void(unsigned texture, unsigned target, const TextureRect& rect,
                     const void* texels)>
      write;
};

/// Sets the graphics that there are from now on; reset() does not change them.
void set_graphics(Graphics graphics);

/// That of OpenGL, in opengl_graphics.cpp, which sets it when the program or module is loaded.
Graphics opengl_graphics();

/// The device that the window's context belongs to (0 at first and after reset()), or −1: another
/// driver draws it.
void set_window_device(int device);

// reset() calls this.
void reset_graphics();

}  // namespace attnscope::cuda::emulation
