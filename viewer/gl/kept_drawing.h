#pragma once

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// A copy of a part of what was drawn, as it is: RGB8, row 0 the lowest. Only on the context's
/// thread.
class KeptDrawing {
 public:
  /// Copies from the framebuffer that is bound: width × height pixels from x, y, of which y counts
  /// from the lowest row.
  void take(int x, int y, int width, int height);
  int x() const { return x_; }
  int y() const { return y_; }
  void bind() const { glBindTexture(GL_TEXTURE_2D, texture_.get()); }

 private:
  TextureName texture_;
  int x_ = 0, y_ = 0, width_ = 0, height_ = 0;
};

}  // namespace attnscope::gl
