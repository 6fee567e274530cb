#pragma once

#include <filesystem>

#include "core/products/query_volumes.h"
#include "io/pictures/film/filmstrip.h"

namespace attnscope {

/// True of names of films that move: .gif, .mp4.
bool is_animation_name(const std::filesystem::path& path);

/// The page of the volumes, whose values need not be there yet. Throws Error(usage) where they are
/// more than a picture can hold, or the page that is asked for.
PageSize check_filmstrip(const std::filesystem::path& path, const QueryVolumes& volumes,
                         const FilmStyle& style);
/// A filmstrip: a row of frames a volume, a colour scale shared by a volume's frames, the query
/// outlined, frame numbers, a colour bar with ticks, unit and domain, the label; of many volumes a
/// FilmGrid. .png, .svg or .pdf. Complete or not at all, as write_volumes_npy().
void write_filmstrip(const QueryVolumes& volumes, const FilmStyle& style,
                     const std::filesystem::path& path, bool force);
/// The volumes played through their latent frames, `rate` a second (0: as suits their number): a
/// .gif that loops, or an .mp4. Throws Error(usage) for more than FilmAnimation::kMostVolumes
/// volumes.
void write_animation(const QueryVolumes& volumes, const FilmStyle& style,
                     const std::filesystem::path& path, bool force, int rate = 0);
/// Its check and its page, before the volumes have values. Throws Error(unavailable) where an .mp4
/// is asked for and there is no ffmpeg.
PageSize check_animation(const std::filesystem::path& path, const QueryVolumes& volumes,
                         const FilmStyle& style);

}  // namespace attnscope
