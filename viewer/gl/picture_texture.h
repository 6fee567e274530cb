#pragma once

#include "io/pictures/canvas.h"
#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// Pictures side by side as one texture in colour. Only on the context's thread.
class PictureTexture {
 public:
  /// As large as that; what was in it is lost where it was not.
  void resize(int width, int height);
  /// Replaces a part that lies within it.
  void update(int x, int y, const Canvas& picture);
  int width() const { return width_; }
  int height() const { return height_; }
  unsigned name() const { return texture_.get(); }

 private:
  int width_ = 0, height_ = 0;
  TextureName texture_;
};

}  // namespace attnscope::gl
