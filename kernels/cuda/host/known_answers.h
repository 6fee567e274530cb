#pragma once

#include "core/stream/tile_backend.h"

namespace attnscope {

/// Lets a backend compute a few small maps, one of every tensor type, and holds them against those
/// of another: a device, driver or build that computes anything else must be found before its
/// numbers are believed. Throws Error(unavailable) with the type and the worst entry.
/// `tf32`: products of float32 tensors may be of 10 bits.
void check_known_answers(const TileBackend& backend, const TileBackend& trusted, bool tf32 = false);

}  // namespace attnscope
