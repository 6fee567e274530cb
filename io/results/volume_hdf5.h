#pragma once

#include <filesystem>

#include "core/products/query_volumes.h"

namespace attnscope {

/// Datasets `volume` [n, T, H, W], `text` [n, text tokens] and coordinates, dimension scales. As
/// write_volumes_npy().
void write_volumes_hdf5(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);

}  // namespace attnscope
