#include "kernels/cuda/head_format.h"

#include <algorithm>
#include <cstring>

#include "core/checked_math.h"
#include "core/dtype.h"
#include "kernels/cpu_packing.h"

namespace attnscope::cuda {

HeadFormat HeadFormat::of(const AttentionProblem& problem) {
  constexpr int64_t kStep = 16;
  HeadFormat format;
  format.source = problem.q().dtype();
  format.score = problem.score();
  format.head_dim = static_cast<int>(problem.head_dim());
  format.padded_dim = static_cast<int>(round_up(problem.head_dim(), kStep));
  format.element_bytes = is_linear(format.score) ? 4 : dtype_bytes(format.source);
  return format;
}

int row_exponent(const HeadFormat& format, const std::byte* row, std::span<float> scratch) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  to_floats(format.source, row, format.head_dim, scratch.data());
  return feature_exponent(format.score,
                          *std::max_element(scratch.begin(), scratch.begin() + format.head_dim));
}

void pack_row(const HeadFormat& format, const std::byte* row, int exponent,
              std::span<float> scratch, std::byte* packed) {
  const auto bytes = static_cast<size_t>(format.head_dim * format.element_bytes);
  if (is_linear(format.score)) {
    to_floats(format.source, row, format.head_dim, scratch.data());
    apply_feature_map(format.score, scratch.data(), format.head_dim, exponent);
    std::memcpy(packed, scratch.data(), bytes);
  } else {
    std::memcpy(packed, row, bytes);
  }
  std::memset(packed + bytes, 0, static_cast<size_t>(format.row_bytes()) - bytes);
}

}  // namespace attnscope::cuda
