#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/products/query_volumes.h"
#include "io/pictures/film/filmstrip.h"

namespace attnscope {

/// The formats of query volumes: .npy, .h5, .csv, a filmstrip (.png, .svg, .pdf), a film that moves
/// (.gif, .mp4).
enum class VolumeFormat : uint8_t { npy, hdf5, csv, png, svg, pdf, gif, mp4 };

/// The format that the extension of `path` asks for, one of `allowed`. Throws Error(usage) that
/// names these: "-o FILE: the name must end in .npy or .csv (got ".txt")".
VolumeFormat volume_format_of(const std::filesystem::path& path,
                              std::span<const VolumeFormat> allowed);

/// True of the formats that are drawn.
bool is_picture(VolumeFormat format);
/// The page of the volumes, which need no values yet. Throws Error(usage) where they do not fit a
/// picture, Error(unavailable) where an .mp4 cannot be made.
PageSize check_film(VolumeFormat format, const std::filesystem::path& path,
                    const QueryVolumes& volumes, const FilmStyle& film);

/// Writes a complete file or throws Error(file) and leaves nothing behind under `path` (written as
/// PATH.part, renamed at the end; a file that is there is replaced with `force` only).
void write_volumes(VolumeFormat format, const QueryVolumes& volumes, const FilmStyle& film,
                   const std::filesystem::path& path, bool force);

}  // namespace attnscope
