#pragma once

#include <filesystem>
#include <functional>

#include "io/pictures/canvas.h"

namespace attnscope {

struct GifOptions {
  int delay_ms = 300;  ///< between two images; GIF counts in hundredths of a second
  /// One palette for all images, else each has its own: better colours, larger file.
  bool shared_palette = true;
};

/// Writes an animation of `count` images of one size that loops for ever, through PATH.part. `draw`
/// gives image i, and is called twice for each where the palette is shared, so that no more than
/// one is in memory. Up to 256 colours are kept as they are; of more, the 256 boxes of a median cut
/// take their means. Throws Error(usage) where the images are larger than GIF allows or differ in
/// size, Error(file) as StagedFile does.
void write_gif(int count, const std::function<Canvas(int)>& draw, const GifOptions& options,
               const std::filesystem::path& path, bool force);

}  // namespace attnscope
