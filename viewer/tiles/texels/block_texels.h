#pragma once

#include <memory>

#include "io/export/read/stored_blocks.h"
#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

/// Pooled exports.
std::unique_ptr<TexelReader> read_texels(std::shared_ptr<const StoredBlocks> blocks);

}  // namespace attnscope
