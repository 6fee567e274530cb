#pragma once

#include <cstdint>
#include <span>

#include "io/pictures/canvas.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/film/film_over.h"
#include "io/pictures/grey_image.h"

namespace attnscope {

/// The cells of one latent frame, each `cell` pixels square, from (x, y) on.
struct FrameCells {
  int x = 0, y = 0, rows = 0, columns = 0, cell = 1;
  PixelRect at(int64_t row, int64_t column) const {
    return {x + static_cast<int>(column) * cell, y + static_cast<int>(row) * cell, cell, cell};
  }
  int width() const { return columns * cell; }
  int height() const { return rows * cell; }
};

/// A pixel of the video with a weight's colour over it: the smaller the weight on its scale, the
/// more is seen of the video.
Rgb overlaid(uint8_t grey, double weight, const ColourScale& scale);

/// Draws weights [rows, columns] as coloured cells, over a frame of the video where there is one
/// (its size does not matter), as film_over() lays them. The canvas must hold all of them. Cells of
/// which `absent` is not 0 have no weight and are hatched; it may be empty.
void draw_frame_cells(Canvas& canvas, const FrameCells& cells, std::span<const float> weights,
                      const ColourScale& scale, const GreyImage* video, const FilmOver& over = {},
                      std::span<const uint8_t> absent = {}, const PictureStyle& look = {});
/// Outlines a cell as the query's. Outlines lie on the data's colours, so that they are alike in
/// all styles.
void draw_query_cell(Canvas& canvas, PixelRect cell, const PictureStyle& look);
/// Outlines a cell as the one where the query is found again.
void draw_match_cell(Canvas& canvas, PixelRect cell, const PictureStyle& look);

}  // namespace attnscope
