#pragma once

#include "core/stream/tile_backend.h"

namespace attnscope {

/// The kinds of work for which a backend is held against known answers.
enum class KnownWork { entries, reductions, texels, outputs };

/// "entries", "reductions" …
const char* known_work_name(KnownWork work);

/// Lets a backend compute small maps of one type of tensors (known_maps.h), and holds them against
/// those of another: a device, driver or build that computes anything else must be found before its
/// numbers are believed. Entries are weights of softmax, of sigmoid and, of float32, of linear
/// scores, with their row sums, in all encodings, and logits; reductions are all but the keys of a
/// share; texels are those of all levels. Throws cuda::Unusable with the type and the first number
/// that is wrong. `tf32`: products of float32 tensors may be of 10 bits.
void check_known_answers(const TileBackend& backend, const TileBackend& trusted, DType dtype,
                         KnownWork work, bool tf32 = false);

}  // namespace attnscope
