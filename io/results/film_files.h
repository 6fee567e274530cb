#pragma once

#include <filesystem>

#include "io/pictures/filmstrip.h"
#include "io/results/volume_files.h"

namespace attnscope {

/// Throws Error(usage) when `volumes` strips of this grid are more than a picture can hold.
void check_film_size(const std::filesystem::path& path, std::array<int64_t, 3> grid,
                     int64_t volumes, const FilmStyle& style);
/// write_volumes_png() in a chosen style.
void write_film_png(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force);
/// The volumes played through their latent frames: an animation that loops. Throws Error(usage)
/// for more than FilmAnimation::kMostVolumes volumes.
void write_film_gif(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force);
/// Its check before the volumes exist.
void check_animation_size(const std::filesystem::path& path, int64_t volumes);

}  // namespace attnscope
