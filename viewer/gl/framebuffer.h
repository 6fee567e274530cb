#pragma once

#include <vector>

#include "io/pictures/colormap.h"
#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// Pixels from the top row down.
struct ReadPixels {
  int width = 0, height = 0;
  std::vector<Rgb> pixels;
  Rgb at(int x, int y) const {
    return pixels[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

/// Reads the colours of the framebuffer that is bound.
ReadPixels read_bound_framebuffer(int width, int height);

/// A picture that is drawn into instead of the window: RGBA8, no depth. Only on the context's
/// thread.
class Framebuffer {
 public:
  /// Throws Error(unavailable or resource) when the driver refuses the size.
  Framebuffer(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  /// The texture that is drawn into, for who shows it elsewhere; its first row is the lowest.
  GLuint texture() const { return colour_.get(); }
  /// Drawing goes here until unbind(), which gives it back to the window.
  void bind() const;
  static void unbind();
  /// Reads back the pixels that were drawn.
  ReadPixels read() const;
  /// Copies everything into the window's framebuffer, which has the same size.
  void show_in_window() const;

 private:
  int width_, height_;
  TextureName colour_;
  FramebufferName framebuffer_;
};

}  // namespace attnscope::gl
