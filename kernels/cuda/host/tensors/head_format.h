#pragma once

#include <cstdint>
#include <span>

#include "core/problem/attention_problem.h"

namespace attnscope::cuda {

/// How rows of Q and K lie in device memory: padded with zeros to whole steps of the tensor-core
/// instructions, one after the other, or in tiles (see kChunkChannels in tile_args.h). Tensors keep
/// their own type; features of linear scores are float32.
struct HeadFormat {
  DType source = DType::f32;
  ScoreFunction score = ScoreFunction::softmax;
  int head_dim = 0;
  int padded_dim = 0;
  int64_t element_bytes = 0;
  bool tiled = false;  ///< whole tiles of rows only

  static HeadFormat of(const AttentionProblem& problem, bool tiled = false);
  int64_t source_row_bytes() const { return head_dim * dtype_bytes(source); }
  /// True where rows are features, which the host makes of the tensor's rows; else the device
  /// places the tensor's own (row_layout.h).
  bool has_features() const { return is_linear(score); }
  /// A row's share of the whole.
  int64_t row_bytes() const;
  /// Rows come in multiples of this.
  int64_t row_unit() const;
};

/// The power of 2 that the features of a row are divided by, so that they neither vanish nor
/// overflow; 0 for all scores but linear:elu1. `scratch` has head_dim elements.
int row_exponent(const HeadFormat& format, const std::byte* row, std::span<float> scratch);

/// Writes the features of a row, float32, and zeros up to row_bytes(). For formats with features
/// alone; `exponent` and `scratch` as above.
void pack_features(const HeadFormat& format, const std::byte* row, int exponent,
                   std::span<float> scratch, std::byte* packed);

}  // namespace attnscope::cuda
