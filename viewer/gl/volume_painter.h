#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/pictures/colormap.h"
#include "viewer/gl/framebuffer.h"
#include "viewer/gl/gl_name.h"
#include "viewer/gl/shader_program.h"

namespace attnscope::gl {

/// The way in which a VolumePainter draws its cells. Vectors are (x, y, z) in cells.
struct VolumeView {
  using Vector = std::array<float, 3>;
  Vector start{};           ///< of the ray through the picture's top left corner
  Vector across{}, down{};  ///< from one pixel's ray to the next
  Vector way{0, 0, 1};      ///< of all rays; no part is 0
  bool emission = false;    ///< else the largest number along a ray
  uint8_t least = 4;        ///< numbers below it are not seen
  int slice_axis = -1;      ///< 0 … 2: a plane in the middle of a layer of cells; −1: none
  int slice_at = 0;
  friend bool operator==(const VolumeView&, const VolumeView&) = default;
};

/// The colours of cells' numbers: those from kFirstNumber on go along the colour map, the lower
/// ones, of cells without a value, are seen on the plane alone.
struct VolumeColours {
  static constexpr int kFirstNumber = 4;
  Colormap map = Colormap::viridis;
  using Colour = std::array<float, 3>;
  Colour nothing{}, masked{}, masked_dot{}, hatch{};
  friend bool operator==(const VolumeColours&, const VolumeColours&) = default;
};

/// Draws a volume of cells by marching rays through it, cell by cell: a cell has one colour from
/// side to side, as it has one number. Blocks of cells that can change nothing are jumped over.
/// Keeps the picture. Only on the context's thread.
class VolumePainter {
 public:
  VolumePainter();

  /// [depth, height, width] numbers: 0 is no value, 1 a masked one, 2 a missing one, 3
  /// one that was evicted.
  void upload(const std::array<int, 3>& depth_height_width, std::span<const uint8_t> numbers);
  /// Draws a picture of so many pixels, transparent where no ray meets anything. A plane across
  /// axis 2 shows `picture` (a texture in colour, its first row at the volume's first), where it is
  /// not 0, in place of its cells, but for evicted ones. Leaves the window's framebuffer bound.
  void draw(int width, int height, const VolumeView& view, const VolumeColours& colours,
            GLuint picture = 0);
  /// The texture of the picture that was drawn last, its first row the lowest; 0: none yet.
  GLuint picture() const { return target_ ? target_->texture() : 0; }
  int width() const { return target_ ? target_->width() : 0; }
  int height() const { return target_ ? target_->height() : 0; }
  const Framebuffer& framebuffer() const { return *target_; }
  int64_t bytes() const;

 private:
  void take_colours(const VolumeColours& colours);

  ShaderProgram program_;
  VertexArrayName nothing_;  ///< a core profile draws from some vertex array, be it empty
  TextureName cells_, blocks_, table_;
  std::array<int, 3> size_{};
  int peak_ = 0;  ///< the largest number
  std::optional<VolumeColours> colours_;
  std::optional<Framebuffer> target_;
};

/// The longest side of a volume that the driver takes, in cells.
int largest_volume_side();

/// The largest number of every block of kVolumeBlock³ cells: [ceil(depth / kVolumeBlock), …].
inline constexpr int kVolumeBlock = 4;
std::vector<uint8_t> block_maxima(const std::array<int, 3>& depth_height_width,
                                  std::span<const uint8_t> numbers);

}  // namespace attnscope::gl
