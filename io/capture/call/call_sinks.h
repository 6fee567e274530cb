#pragma once

#include <string>
#include <vector>

#include "core/problem/sinks.h"
#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The numbers of a small floating tensor, of any shape. Throws Error(file) where it is of another
/// type.
std::vector<float> all_floats(const TensorSource& tensor);
/// As all_floats(), of a box of it.
std::vector<float> floats_in(const TensorSource& tensor, std::span<const int64_t> begin,
                             std::span<const int64_t> count);
/// Throws Error(wrong) where all_floats() would for its type.
void require_floats(const TensorSource& tensor, ErrorCode wrong = ErrorCode::file);

/// The sinks that a tensor tells of calls with these batch items, heads and queries: a logit a head
/// [H], or what broadcasts to [B, H, Nq] or [B, H, Nq, 1]. Throws Error(wrong) where the tensor is
/// of another type or shape, Error(value), Error(file).
Sinks read_sinks(const TensorSource& tensor, const Sinks::Shape& call,
                 ErrorCode wrong = ErrorCode::file);

/// The call's sinks: those of --sinks (none, a logit for all rows, or FILE[:KEY]), else the tensor
/// that stands beside q. A note where the option replaces a tensor. Throws Error(usage),
/// Error(file) where they are of another type or shape, or fit in two ways; Error(value) where one
/// is no number.
Sinks call_sinks(const CallTensors& tensors, const HeadTensor& q, const FactOverrides& overrides,
                 const ReadControl& control, std::vector<std::string>& notes);

}  // namespace attnscope
