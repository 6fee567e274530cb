#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/grey_image.h"

namespace attnscope {

/// How numbers lie over a frame of a video: their colours, the more of them the larger the number;
/// the outline of the cells that hold most; or lines of equal numbers.
enum class FilmMode : uint8_t { tint, outline, contour };
/// "tint", "outline", "contour".
std::string_view film_mode_name(FilmMode mode);
std::optional<FilmMode> parse_film_mode(std::string_view name);
std::vector<std::string> film_mode_names();

struct FilmOver {
  FilmMode mode = FilmMode::tint;
  double opacity = 1;   ///< of the tint: 1 leaves 15 % of the video at the scale's high end
  double outlined = 0;  ///< the smallest number within the outline
  /// The numbers are differences of either sign: their size counts, not how large they are.
  bool by_size = false;
  int line = 2;  ///< pixels of outlines and contours
};

/// An outline of weights goes around the fewest cells that hold this share of all.
inline constexpr double kOutlinedMass = 0.5;
/// Contours stand where the scale is at these shares of its length.
inline constexpr double kContourShares[] = {0.2, 0.4, 0.6, 0.8};

/// A share of the tint's colour over the video, for a number at `unit` of its scale (0 … 1).
double film_cover(double unit, double opacity);
/// A pixel of the video with `cover` (0 … 1) of a colour over it.
Rgb tinted(uint8_t grey, Rgb colour, double cover);

/// Numbers [rows, columns] over a frame; the picture has the frame's size, and a cell of it the
/// pixels from ⌊i·size/count⌋ on. −inf (masked) and NaN (not known) leave the frame as it is.
Canvas film_over(const GreyImage& frame, std::span<const float> numbers, int rows, int columns,
                 const ColourScale& scale, const FilmOver& how);

/// The smallest number of the fewest cells that together hold `share` of the sum of all; numbers
/// below 0, −inf and NaN count as 0. Nothing above 0: +inf.
double mass_threshold(std::span<const float> numbers, double share);
/// The number that `share` of the finite ones lie below.
double quantile_threshold(std::span<const float> numbers, double share);

}  // namespace attnscope
