#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "io/pictures/shader_scale.h"
#include "viewer/gl/grid_texture.h"
#include "viewer/gl/kept_drawing.h"
#include "viewer/gl/map_shaders.h"
#include "viewer/gl/shader_program.h"
#include "viewer/gl/texture_pool.h"

namespace attnscope::gl {

/// How numbers become colours. What the numbers are is part of it, so that nothing is uploaded anew
/// when any of this changes.
struct MapColours {
  bool texels_are_log2 = true;  ///< of weights; logits are as they are
  bool use_mean = false;        ///< the second number of a texel instead of the first
  bool by_size = false;         ///< of several texels the largest in size, not the largest
  ShaderScale scale;
  using Colour = std::array<float, 3>;
  Colour nothing{0.027f, 0.031f, 0.035f};  ///< of what the scale cannot show
  Colour hatch{0.25f, 0.27f, 0.29f};       ///< stripes where a number is +inf: not there
  Colour masked{0.137f, 0.157f, 0.18f};    ///< where a number is −inf: masked
  Colour masked_dot{0.408f, 0.451f, 0.498f};
  friend bool operator==(const MapColours&, const MapColours&) = default;
};

/// A rectangle on the screen, in pixels from the top left, and the texels that fill it: x0 … x1
/// show columns u0 … u1 of the texture, y0 … y1 rows v0 … v1, in texels.
struct MapQuad {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  float u0 = 0, v0 = 0, u1 = 0, v1 = 0;
  PoolSlot slot;  ///< of a pool's tile; unused for a GridTexture
  friend bool operator==(const MapQuad&, const MapQuad&) = default;
};

/// Pixels of the drawing area and of the part of it that may be painted, from the top left.
struct PaintArea {
  int width = 0, height = 0;
  int clip_x0 = 0, clip_y0 = 0, clip_x1 = 0, clip_y1 = 0;
  friend bool operator==(const PaintArea&, const PaintArea&) = default;
};

/// Draws texels through a colour table. Leaves its own program, buffers and scissor bound. Only on
/// the context's thread.
class MapPainter {
 public:
  MapPainter();
  /// Takes the colours of a map.
  void set_colormap(Colormap map);
  void draw_tiles(const TexturePool& pool, std::span<const MapQuad> quads,
                  const MapColours& colours, const PaintArea& area);
  void draw_grid(const GridTexture& grid, std::span<const MapQuad> quads, const MapColours& colours,
                 const PaintArea& area);
  /// Draws quads whose pixels are those of a copy of this very area: the same bytes, without their
  /// colours being found anew.
  void draw_kept(const KeptDrawing& kept, std::span<const MapQuad> quads, const PaintArea& area);

 private:
  const ShaderProgram& program_of(const MapVariant& variant);
  void prepare(const MapVariant& variant, const MapColours& colours, const PaintArea& area);
  static void set_area(const ShaderProgram& program, const PaintArea& area);
  void draw(std::span<const MapQuad> quads);

  std::map<MapVariant, ShaderProgram> programs_;  ///< made when they are first needed
  std::optional<ShaderProgram> kept_program_;
  VertexArrayName vertices_;
  BufferName buffer_;
  TextureName table_;
  Colormap colormap_ = Colormap::viridis;
  bool have_table_ = false;
  std::vector<float> scratch_;
};

}  // namespace attnscope::gl
