#pragma once

#include <memory>

#include "core/tensor/layout.h"

namespace attnscope {

/// `tensor` as f32 [batch, heads, tokens, width]. Where there is a `normaliser`, f32 [batch, heads,
/// tokens], every row is divided by its own when it is read, in double, and rounded once. Reading
/// throws Error(value) with tensor and index where a normaliser is not a finite number above 0.
/// Shares both; thread-safe.
std::shared_ptr<const TensorSource> normalised_tensor(
    const HeadTensor& tensor, std::shared_ptr<const TensorSource> normaliser);

}  // namespace attnscope
