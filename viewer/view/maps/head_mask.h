#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/mask/edited_mask.h"
#include "core/patterns/mask_summary.h"
#include "viewer/view/maps/map_tile.h"

namespace attnscope {

/// Blocks that a mask is drawn in, along each side of the map, at most.
inline constexpr int64_t kMostMaskBlocks = 512;

/// A mask whose blocks and numbers are wanted for one head.
struct MaskRequest {
  HeadId head;          ///< its blocks are told in the order of HeadId::order
  std::string text;     ///< as `attnscope mask --mask` reads it: a pattern, FILE.npy or FILE.json
  int64_t block = 128;  ///< tokens of a block of FILE.npy; 128: of one that does not say
  std::vector<MaskEdit> edits = {};  ///< after which it is kept and dropped, the latest last
  bool lost = false;                 ///< HeadMask::mass is wanted as well
  friend auto operator<=>(const MaskRequest&, const MaskRequest&) = default;
};

/// The blocks that a mask keeps of a head, and its numbers so far. Immutable once published.
struct HeadMask {
  MaskRequest request;
  std::string problem;  ///< why there is no mask, one line; empty: there is
  std::string other;    ///< "layer 3 head 2": whose blocks the file has; empty: this head's, or any
  int64_t block = 1;    ///< tokens of a block that is drawn: the least power of two that fits
  int64_t query_blocks = 0, key_blocks = 0;
  /// [query_blocks, key_blocks]: 1 where the mask keeps anything of the block.
  std::vector<uint8_t> kept;
  /// As `attnscope mask` has it once `all_rows`; of sampled rows before; nothing before that.
  std::optional<MaskQuality> quality;
  bool all_rows = false;
  /// [query_blocks, key_blocks]: the mean over a block's rows of the weight on its keys; empty
  /// until it is known. In the stored order alone.
  std::vector<float> mass;

  /// True where anything is kept of the block that an entry lies in, by its places.
  bool keeps(int64_t row, int64_t col) const { return kept[block_at(row, col)] != 0; }
  /// The number of that block.
  size_t block_at(int64_t row, int64_t col) const {
    return static_cast<size_t>(row / block * key_blocks + col / block);
  }
};

/// The largest HeadMask::mass of a block that is dropped; 0 where none is, or none is known.
double most_lost(const HeadMask& mask);
/// Tokens of a block that a mask over a map of this size is drawn in.
int64_t mask_block(int64_t rows, int64_t cols);

}  // namespace attnscope
