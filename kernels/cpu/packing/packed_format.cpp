#include "kernels/cpu/packing/packed_format.h"

namespace attnscope {

int64_t PackedFormat::parts() const {
  if (products != PackedProducts::tiles) return 1;
  if (dtype == DType::f32) return 3;
  return dtype == DType::f16 && !whole_f16 ? 2 : 1;
}

int64_t PackedFormat::steps() const {
  // Pairs of channels that fill a tile's row.
  constexpr int64_t kTilePairs = 16;
  const int64_t pairs = (head_dim + 1) / 2;
  switch (products) {
    case PackedProducts::floats:
      return head_dim;
    case PackedProducts::bf16_pairs:
      return pairs;
    case PackedProducts::tiles:
      return parts() * round_up(pairs, kTilePairs);
  }
  return head_dim;
}

}  // namespace attnscope
