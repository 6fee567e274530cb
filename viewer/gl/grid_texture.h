#pragma once

#include <cstdint>
#include <span>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// A [rows, cols] grid of floats as a texture; it changes its size with what is uploaded. Only on
/// the context's thread.
class GridTexture {
 public:
  /// `values` in the representation of MapPainter's texels: log2 of weights, or logits.
  void upload(int rows, int cols, std::span<const float> values);
  /// As large as that, with nothing in it yet.
  void resize(int rows, int cols) { upload(rows, cols, {}); }
  /// Replaces a part that lies within it.
  void update(int row, int col, int rows, int cols, std::span<const float> values);
  void bind() const { glBindTexture(GL_TEXTURE_2D, texture_.get()); }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  /// Another one after every change of what is in it.
  int64_t uploads() const { return uploads_; }

 private:
  int rows_ = 0, cols_ = 0;
  int64_t uploads_ = 0;
  TextureName texture_;
};

/// The longest side of a texture that the driver takes.
int largest_texture_side();

}  // namespace attnscope::gl
