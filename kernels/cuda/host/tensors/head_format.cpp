#include "kernels/cuda/host/tensors/head_format.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/dtype.h"
#include "kernels/common/feature_map.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

HeadFormat HeadFormat::of(const AttentionProblem& problem, bool tiled) {
  constexpr int64_t kStep = 16;
  HeadFormat format;
  format.source = problem.q().dtype();
  format.score = problem.score();
  format.head_dim = static_cast<int>(problem.head_dim());
  format.padded_dim = static_cast<int>(round_up(problem.head_dim(), kStep));
  format.element_bytes = is_linear(format.score) ? 4 : dtype_bytes(format.source);
  format.tiled = tiled;
  return format;
}

int64_t HeadFormat::row_bytes() const {
  return (tiled ? round_up(padded_dim, kChunkChannels) : padded_dim) * element_bytes;
}

int64_t HeadFormat::row_unit() const { return tiled ? kTileRows : 1; }

int row_exponent(const HeadFormat& format, const std::byte* row, std::span<float> scratch) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  to_floats(format.source, row, format.head_dim, scratch.data());
  return feature_exponent(format.score,
                          *std::max_element(scratch.begin(), scratch.begin() + format.head_dim));
}

void pack_features(const HeadFormat& format, const std::byte* row, int exponent,
                   std::span<float> scratch, std::byte* packed) {
  to_floats(format.source, row, format.head_dim, scratch.data());
  apply_feature_map(format.score, scratch.data(), format.head_dim, exponent);
  const auto features = std::as_bytes(scratch.first(static_cast<size_t>(format.head_dim)));
  std::copy(features.begin(), features.end(), packed);
  std::fill_n(packed + features.size(), static_cast<size_t>(format.row_bytes()) - features.size(),
              std::byte{0});
}

}  // namespace attnscope::cuda
