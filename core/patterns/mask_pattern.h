#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnscope {

/// The sparse patterns that have names. docs/masks.md has their formulas and sources.
enum class PatternKind : uint8_t {
  none,            ///< keeps everything
  causal,          ///< key ≤ query
  window,          ///< |key − query| ≤ reach
  block_causal,    ///< key within the query's block of `block` tokens, or an earlier one
  spatial,         ///< frames within `frames` of the query's
  temporal,        ///< |Δy|, |Δx| ≤ band in all frames
  tiles,           ///< a window of tiles around the query's tile (Sliding Tile Attention)
  radial,          ///< reach falls with the distance of frames (Radial Attention)
  vertical_slash,  ///< the columns and diagonals with the most mass in sampled rows (MInference)
  topk,            ///< the blocks with the largest q̄·k̄
  topp,            ///< the fewest blocks whose softmax of q̄·k̄ reaches p
};

/// One pattern with its parameters, as parse_mask_pattern reads it. A value.
struct MaskPattern {
  PatternKind kind = PatternKind::none;
  std::string text;       ///< as it was written
  bool keep_text = true;  ///< text=keep|drop: whether every video row keeps the text keys
  int64_t reach = 0;      ///< window
  int64_t frames = 0;     ///< spatial
  int64_t band = -1;      ///< temporal; −1: the largest with T·(2·band + 1)² ≤ H·W
  std::array<int64_t, 3> tile{6, 8, 8};    ///< tiles: size, T x H x W cells
  std::array<int64_t, 3> window{3, 3, 3};  ///< tiles: window, in tiles
  int64_t block = 128;                     ///< block_causal, radial, topk, topp
  double decay = 1;                        ///< radial
  int64_t sink = 0;                        ///< radial: first frames that are always kept
  int64_t vertical = 64;                   ///< vertical-slash: columns
  int64_t slash = 64;                      ///< vertical-slash: diagonals
  int64_t rows = 64;                       ///< vertical-slash: rows they are chosen from
  double keep = 0.1;                       ///< topk: share of the key blocks, where blocks is 0
  int64_t blocks = 0;                      ///< topk: key blocks a row of blocks
  double p = 0.9;                          ///< topp

  /// Tokens of the blocks that the pattern is made of, or a kernel of it computes; nothing where
  /// it has none.
  std::optional<int64_t> own_block() const;
  /// True where the mask depends on a head's Q and K.
  bool needs_head() const { return kind >= PatternKind::vertical_slash; }
};

/// "NAME[:key=value,…]", as docs/masks.md lists them; `option` is how messages name it ("--mask").
/// Throws Error(usage) naming the nearest word where a name or key is unknown, and the valid range
/// where a value is not in it.
MaskPattern parse_mask_pattern(std::string_view text, std::string_view option);
/// The names of all patterns.
std::span<const std::string> mask_pattern_names();
/// These names with values for their keys, as help shows them: "window:N",
/// "topk:block=128,keep=0.1".
std::vector<std::string> mask_pattern_words();

}  // namespace attnscope
