#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mask/neighbourhood.h"
#include "core/mask/picked_blocks.h"
#include "core/problem/token_order.h"

namespace attnscope {

/// The sparse patterns that have names. docs/lab.md has their formulas and sources.
enum class PatternKind : uint8_t {
  none,            ///< keeps everything
  causal,          ///< key ≤ query
  window,          ///< |key − query| ≤ reach
  block_causal,    ///< key within the query's block of `block` tokens, or an earlier one
  spatial,         ///< frames within `frames` of the query's
  temporal,        ///< |Δy|, |Δx| ≤ band in all frames
  tiles,           ///< a window of tiles around the query's tile (Sliding Tile Attention)
  natten,          ///< a window of cells around the query's (neighbourhood attention)
  radial,          ///< reach falls with the distance of frames (Radial Attention)
  vertical_slash,  ///< the columns and diagonals with the most mass in sampled rows (MInference)
  topk,            ///< the blocks with the largest q̄·k̄
  topp,            ///< the fewest blocks whose softmax of q̄·k̄ reaches p
  // Selectors of kernels, as their code has them.
  sol,           ///< Sol-Attn
  subblock,      ///< SubBlock, also called KeySplit
  vsa,           ///< Video Sparse Attention
  sla,           ///< Sparse-Linear Attention's choice
  sparge,        ///< SpargeAttn
  nabla,         ///< NABLA of Kandinsky 5
  draft,         ///< DraftAttention
  ssta,          ///< Selective and Sliding Tile Attention of HunyuanVideo 1.5
  xattention,    ///< XAttention
  dfs,           ///< DFSAttn
  skip_softmax,  ///< skip-softmax, also called BLASST
  block_oracle,  ///< the blocks with the most mass: no method, but what one could reach
};

/// Text, references and all else that is not video, in a pattern.
enum class TextRule : uint8_t {
  keep,    ///< all queries keep these keys, these queries all keys
  drop,    ///< queries of the video drop the keys of text
  compete  ///< tokens like any other
};

/// SpargeAttn's blocks.
inline constexpr int64_t kSpargeQueries = 128, kSpargeKeys = 64;

/// One pattern with its parameters, as parse_mask_pattern reads it. A value.
struct MaskPattern {
  PatternKind kind = PatternKind::none;
  std::string text;  ///< as it was written
  TextRule text_rule = TextRule::keep;
  int64_t reach = 0;   ///< window
  int64_t frames = 0;  ///< spatial
  int64_t band = -1;   ///< temporal; −1: the largest with T·(2·band + 1)² ≤ H·W
  std::array<int64_t, 3> tile{6, 8, 8};    ///< tiles and selectors of tiles: T x H x W cells
  std::array<int64_t, 3> window{3, 3, 3};  ///< tiles, nabla, ssta: in tiles; 0x0x0: none
  Neighbourhood neighbourhood;             ///< natten
  int64_t block = 128;                     ///< of blocks in the order of the tokens
  double decay = 1;                        ///< radial
  int64_t sink = 0;                        ///< radial: first frames that are always kept
  int64_t vertical = 64;                   ///< vertical-slash: columns
  int64_t slash = 64;                      ///< vertical-slash: diagonals
  int64_t rows = 64;                       ///< vertical-slash: rows they are chosen from
  double keep = 0.1;            ///< topk, selectors: share of the key blocks; 0: no budget
  int64_t blocks = 0;           ///< topk, ssta: key blocks a row of blocks; 0: not told
  double p = 0.9;               ///< topp, nabla, xattention
  double tau = 1;               ///< sol: standard deviations that a score lies above
  bool exact_variance = false;  ///< sol: with the keys' covariances, not a channel alone
  BlockRest rest = BlockRest::renormalise;  ///< selectors
  double gate = 1;                          ///< selectors with a rest that is a branch
  /// subblock: cells of a block of queries and of keys; dfs: the same of both.
  std::array<int64_t, 2> cells{4, 4};
  int64_t stride = 16;           ///< xattention: side of the squares that stand for a number
  double sim = 0.6, cdf = 0.98;  ///< sparge
  /// ssta: weight of likeness against redundancy; skip-softmax: the share of a row's maximum that a
  /// block must reach.
  double lambda = 0.7;
  TokenOrder order;  ///< selectors without tiles: of the tokens that blocks are cut from

  /// Tokens of the blocks that the pattern is made of, or a kernel of it computes; nothing where
  /// it has none.
  std::optional<int64_t> own_block() const;
  /// True where the mask depends on a head's Q and K.
  bool needs_head() const { return kind >= PatternKind::vertical_slash; }
  /// True of a selector whose blocks are of tokens that do not stand side by side.
  bool reorders() const;
  /// True of the selector of a published kernel.
  bool is_selector() const { return kind >= PatternKind::sol; }
};

/// "NAME[:key=value,…]", as docs/lab.md lists them; `option` is how messages name it ("--mask").
/// Throws Error(usage) naming the nearest word where a name or key is unknown, and the valid range
/// where a value is not in it.
MaskPattern parse_mask_pattern(std::string_view text, std::string_view option);
/// The names of all patterns.
std::span<const std::string> mask_pattern_names();
/// These names with values for their keys, as help shows them: "window:N",
/// "topk:block=128,keep=0.1".
std::vector<std::string> mask_pattern_words();

}  // namespace attnscope
