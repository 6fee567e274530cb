#pragma once

#include <memory>

#include "io/export/read/stored_maps.h"
#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

/// Exports of weights, rows and logits.
std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredMaps> maps);

}  // namespace attnscope
