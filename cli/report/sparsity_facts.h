#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "core/heads/layer_heads.h"
#include "core/problem/token_grid.h"
#include "io/files/json_types.h"

namespace attnscope {

// Parts of a report's section `sparsity` that are made of the heads' numbers alone, so that tables
// without a capture have them, too. Heads are named by their places among the records. Parts that
// nothing is known of are null, which is no part of the page.

/// `curves`: of each layer the mean over its heads of keys_for_50 … keys_for_99, as numbers of keys
/// (`keys`) and, of heads whose keys seen are known, as shares of these (`density`). Layers none of
/// whose heads count keys are left out.
OrderedJson sparsity_curves(std::span<const HeadRecord> records, const KeysSeen& keys_seen);
/// Shares of keys at which an axis of their logarithms has its ticks: from the least density of
/// these curves, half of all keys at most, to all of them.
OrderedJson density_ticks(const OrderedJson& curves);

/// Heads whose heaviest column has at least this mass are listed as sinks, at most so many.
inline constexpr double kSinkMass = 0.1;
inline constexpr size_t kMostSinkHeads = 12;
/// `sinks`: the most mass first, with the heaviest columns of each. An empty list where no head has
/// one; null where no head's columns are known.
OrderedJson sparsity_sinks(std::span<const HeadRecord> records);

/// `padding`: how much of their mass the video's tokens give to padding, and which heads give at
/// least kPaddingMass; null where no head's padding is known.
inline constexpr double kPaddingMass = 0.1;
OrderedJson sparsity_padding(std::span<const HeadRecord> records);

/// The tokens of a head's queries and keys, where they are known.
struct HeadTokens {
  const TokenGrid* queries = nullptr;
  const TokenGrid* keys = nullptr;
};
/// `frames`: mean over heads of the array frame_frame, of the most heads whose queries and keys
/// have the same parts. `tokens` has one a record. Null where no record has the array, or no such
/// head has two parts.
OrderedJson sparsity_frames(std::span<const HeadRecord> records,
                            std::span<const HeadTokens> tokens);

}  // namespace attnscope
