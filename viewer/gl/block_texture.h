#pragma once

#include <cstdint>
#include <span>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {

/// A grid of blocks in colours of their own, with opacity, as a texture whose blocks have sharp
/// edges. Only on the context's thread.
class BlockTexture {
 public:
  /// `colours` [rows, cols], bytes R, G, B, A from the lowest on (ImGui's order).
  void upload(int rows, int cols, std::span<const uint32_t> colours);
  unsigned name() const { return texture_.get(); }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int64_t bytes() const { return int64_t{4} * rows_ * cols_; }

 private:
  int rows_ = 0, cols_ = 0;
  TextureName texture_;
};

}  // namespace attnscope::gl
