#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/problem/rope.h"
#include "core/problem/token_grid.h"
#include "core/tensor/layout.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The value of `--rope NAME`: a family, and what some need beside the grid: "ltx:HEADS"
/// (heads of the model), "mochi:FILE[:KEY]" (its pos_frequencies), "NAME:base=B,fps=N,scale=TxYxX,
/// heads=N" (any of those that the family knows).
struct RopeOption {
  std::string text;  ///< as it was given
  RopeFamily family = RopeFamily::cogvideox;
  int64_t heads = 0;  ///< of the model; 0: not told
  RopeNumbers numbers;
  std::vector<float> learnt;  ///< [3, heads, head_dim / 2]

  /// Throws Error(usage) for a family that does not exist (suggesting the nearest), lacks what it
  /// needs or is given what it does not know, Error(file) for a file that is not [3, heads,
  /// channels].
  static RopeOption parse(const std::string& text, const ReadControl& control);
  /// `tensor` turned by it when read; its first head is head `head_offset` of the model.
  /// `positions`: of its tokens, where they are known and the family takes them. Throws
  /// Error(usage) that says why where the family does not suit the tokens or the head dimension.
  HeadTensor apply(const HeadTensor& tensor, const TokenGrid& tokens, int64_t head_offset,
                   const std::shared_ptr<const TokenPositions>& positions = nullptr) const;
};

/// True of a tensor `position_ids` of a call with so many queries: [queries, axes], f32, f64, f16
/// or bf16.
bool is_token_positions(const TensorSource& tensor, int64_t queries);
/// The positions that such a tensor has. Throws Error(file) where one is no finite number.
std::shared_ptr<const TokenPositions> read_positions(const TensorSource& tensor);

/// The names of all families with what stands behind them: "ltx[:heads=N]", "mochi:FILE[:KEY]".
std::vector<std::string> rope_words();

}  // namespace attnscope
