#pragma once

#include <cstdint>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "core/problem/score.h"
#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

/// Which products a packed head is made for.
enum class PackedProducts : uint8_t {
  floats,      ///< an element is a channel widened to float32, for linear scores its feature map φ
  bf16_pairs,  ///< two neighbouring channels in bf16, the even one in the low half
  tiles,       ///< the same for the tile unit; f32 as three bf16 numbers a channel, f16 as two
};

/// How the CPU kernels want Q and K: as 32-bit elements, a step of the head dimension after the
/// other. Keys stand in panels [steps, kPanelKeys], query rows in groups [steps, kRegisterRows].
/// Missing rows and channels are 0.
/// For tiles, steps are [parts, pairs]: a channel is the sum of its parts, exactly, the largest
/// first, and the pairs of a part fill whole tiles. Query rows stand as rows: a group is
/// [rows / kTileUnitRows, parts, kTileUnitRows, pairs].
struct PackedFormat {
  DType dtype = DType::f32;  ///< of the tensors: f32, f16 or bf16
  int64_t head_dim = 0;
  ScoreFunction score = ScoreFunction::softmax;
  /// bf16_pairs needs dtype bf16; both that are not floats need a score that is not linear.
  PackedProducts products = PackedProducts::floats;
  /// For tiles of dtype f16: pairs are of f16 numbers as they are, which the tile unit multiplies.
  bool whole_f16 = false;

  /// Numbers that a channel is the sum of.
  int64_t parts() const;
  /// Elements of a row.
  int64_t steps() const;
  /// Rows of a group at most.
  int64_t group_rows() const {
    return products == PackedProducts::tiles ? kMaxGroupRows : kRegisterRows;
  }
  /// Rows that are computed where a group has `count`.
  int64_t computed_rows(int64_t count) const {
    return round_up(count, products == PackedProducts::tiles ? kTileUnitRows : kRegisterRows);
  }
};

}  // namespace attnscope
