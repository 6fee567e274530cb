#pragma once

#include <limits>

namespace attnscope {

/// The bias of an entry that a mask leaves out, and its logit.
inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Biases from this one down say that an entry is masked, as −inf does: programs write −10⁹ or the
/// lowest number of a type. So low, float32 logits are 1/2 apart: a softmax of them is decided by
/// how they were rounded, and kernels return about the mean of V. It lies below every logit that
/// the backends resolve (2²² octaves, −2.9·10⁶), where an entry with such a bias has weight 0
/// beside any key that counts.
inline constexpr float kMaskedBias = -0x1p22f;

/// The bias that an entry is computed with: −inf where it is masked.
inline float effective_bias(float bias) { return bias <= kMaskedBias ? kMasked : bias; }

}  // namespace attnscope
