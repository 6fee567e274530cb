#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/products/query_volumes.h"

namespace attnscope {

/// The formats of query volumes: .npy, .h5, .csv, a .png filmstrip, a .gif that plays it.
enum class VolumeFormat : uint8_t { npy, hdf5, csv, png, gif };

/// The format that the extension of `path` asks for, one of `allowed`. Throws Error(usage) that
/// names these: "-o FILE: the name must end in .npy or .csv (got ".txt")".
VolumeFormat volume_format_of(const std::filesystem::path& path,
                              std::span<const VolumeFormat> allowed);

/// Throws Error(usage) when more volumes than a picture or an animation can hold are to be drawn,
/// before they exist.
void check_volume_count(VolumeFormat format, const std::filesystem::path& path,
                        std::array<int64_t, 3> grid, int64_t volumes);

/// Writes a complete file or throws Error(file) and leaves nothing behind under `path` (written as
/// PATH.part, renamed at the end; a file that is there is replaced with `force` only).
void write_volumes(VolumeFormat format, const QueryVolumes& volumes,
                   const std::filesystem::path& path, bool force);

}  // namespace attnscope
