#pragma once

#include <filesystem>

#include "core/products/query_volumes.h"
#include "io/pictures/film/filmstrip.h"

namespace attnscope {

/// Throws Error(usage) when `volumes` strips of this grid are more than a picture can hold.
void check_film_size(const std::filesystem::path& path, std::array<int64_t, 3> grid,
                     int64_t volumes, const FilmStyle& style);
/// A filmstrip: a row of T frames a volume, a colour scale shared by a volume's frames, the query
/// outlined, frame numbers, a colour bar with ticks, unit and domain, the label. Complete or not at
/// all, as write_volumes_npy().
void write_film_png(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force);
/// The volumes played through their latent frames: an animation that loops. Throws Error(usage)
/// for more than FilmAnimation::kMostVolumes volumes.
void write_film_gif(const QueryVolumes& volumes, const FilmStyle& style,
                    const std::filesystem::path& path, bool force);
/// Its check before the volumes exist.
void check_animation_size(const std::filesystem::path& path, int64_t volumes);

}  // namespace attnscope
