#pragma once

#include <memory>

#include "core/stream/tile_backend.h"

namespace attnscope {

/// The definition of every entry, in double: plain loops over the stored Q and K, one row at a
/// time. What the other backends are tested against; far too slow for anything else.
std::unique_ptr<TileBackend> make_reference_backend(int threads);

}  // namespace attnscope
