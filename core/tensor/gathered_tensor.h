#pragma once

#include <memory>

#include "core/base/place_order.h"
#include "core/tensor/layout.h"

namespace attnscope {

/// `tensor` as [batch, heads, tokens, width] in its dtype, with its tokens in another order: row i
/// is row order.token(i). Shares both; thread-safe. A box is read in the order in which the rows
/// are stored, in spans of at most 1 MiB, of which what lies between wanted rows is passed over
/// where it is little.
std::shared_ptr<const TensorSource> gathered_tensor(const HeadTensor& tensor, PlaceOrder order);

}  // namespace attnscope
