#pragma once

#include <map>
#include <memory>

#include "core/heads/head_sketch.h"
#include "io/pictures/colour_scale.h"
#include "viewer/gl/grid_texture.h"
#include "viewer/view/view_state.h"

namespace attnscope {

/// The thumbnails of the heads that are seen, side by side in one texture. Each is as fine as the
/// pixels that it is drawn on, never finer: what is left out would be lost between pixels. Only on
/// the context's thread.
class SketchTextures {
 public:
  /// Where a thumbnail lies, in texels.
  struct Place {
    int row = 0, col = 0, rows = 0, cols = 0;
  };

  /// Thumbnails reach from their own lowest to their own highest hundredth, whatever the weights of
  /// other heads are; their texels are logarithms of a number in this range, on a log scale.
  static constexpr ValueRange kRange{1, 2};

  /// For a frame in which at most `heads` are drawn on cells of `pixels`, showing `pool`, spread
  /// over the colours as `scale` says. Forgets those of another size, pool or scale.
  void begin(int64_t heads, float pixels, Pool pool, ScaleKind scale);
  /// The thumbnail of `sketch`, brought there if it is not.
  Place place(const HeadId& head, const std::shared_ptr<const HeadSketch>& sketch);
  const gl::GridTexture& grid() const { return grid_; }
  int64_t bytes() const;

 private:
  struct Entry {
    int slot = 0;
    std::shared_ptr<const HeadSketch> sketch;
    Place place;
  };

  gl::GridTexture grid_;
  int side_ = 0;   ///< of a slot, in texels
  int slots_ = 0;  ///< along a side of the texture
  Pool pool_ = Pool::max;
  ScaleKind scale_ = ScaleKind::log2;
  std::map<HeadId, Entry> entries_;
};

}  // namespace attnscope
