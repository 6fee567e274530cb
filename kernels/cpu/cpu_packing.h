#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem/score.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// How the CPU kernels want Q and K: as 32-bit elements, a step of the head dimension after the
/// other. Keys stand in panels [steps, kPanelKeys], query rows in groups [steps, kGroupRows]. An
/// element is either one channel widened to float32 (for linear scores its feature map φ), or two
/// neighbouring channels in bf16, the even one in the low half. Missing rows and channels are 0.
struct PackedFormat {
  DType dtype = DType::f32;  ///< of the tensors: f32, f16 or bf16
  int64_t head_dim = 0;
  ScoreFunction score = ScoreFunction::softmax;
  bool bf16_pairs = false;  ///< needs dtype bf16 and a score that is not linear

  int64_t steps() const { return bf16_pairs ? (head_dim + 1) / 2 : head_dim; }
};

/// The power of two by which the features of numbers up to `largest` are to be divided, so that
/// float32 does not flush them to 0: elu(x) + 1 = exp(x) for x ≤ 0 is tiny where all x are far
/// below 0. A row's weights do not depend on it. 0 in all usual cases.
int feature_exponent(ScoreFunction score, float largest);

/// The feature map of linear scores (elu(x) + 1 or max(x, 0)), in place, divided by 2^exponent;
/// others are left alone.
void apply_feature_map(ScoreFunction score, float* values, int64_t count, int exponent);

/// Elements of all packed panels of `num_keys` keys.
int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys);
/// Bytes that pack_keys allocates while it runs.
int64_t pack_keys_transient_bytes(const PackedFormat& format, int64_t num_keys);
/// Reads one head of K in pieces of at most 1 MiB and packs it. Returns the exponent that all its
/// features were divided by.
int pack_keys(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
              float* panels);

/// Packs up to kGroupRows rows, stored one after the other in format.dtype at any address.
/// `scratch` holds head_dim floats; exponents[row] becomes what the row's features were divided by.
void pack_queries(const PackedFormat& format, const std::byte* rows, int64_t count, float* group,
                  float* scratch, float* exponents);

}  // namespace attnscope
