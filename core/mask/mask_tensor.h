#pragma once

#include <memory>

#include "core/mask/mask_term.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The term of Mask::tensor: biases as `source` holds them, broadcast to [B, H, Nq, Nk].
MaskTermPtr tensor_term(std::shared_ptr<const TensorSource> source);

}  // namespace attnscope
