#pragma once

#include <filesystem>
#include <memory>

#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

/// Any export with maps, by its product. Throws Error(usage) where it has none, Error(file) where
/// it is damaged.
std::unique_ptr<TexelReader> read_export_texels(const std::filesystem::path& path);

}  // namespace attnscope
