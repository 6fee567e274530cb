#pragma once

#include <memory>

#include "viewer/tiles/map_work.h"
#include "viewer/tiles/texels/texel_reader.h"

namespace attnscope {

/// Maps that are read from an export. Nothing is sampled. Where a texel covers entries that are not
/// in the file, it shows those that are; where there are none, its numbers are NaN, as those of a
/// line are.
std::unique_ptr<MapWork> export_maps(std::shared_ptr<const TexelReader> reader);

}  // namespace attnscope
