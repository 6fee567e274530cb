#pragma once

#include <string>

#include "io/capture/call/call_tensors.h"
#include "io/capture/call/head_tensors.h"

namespace attnscope {

/// Checks lse, out and out_rows, which only the self-check uses, against Q, K and V: dtypes, shapes
/// and rows. Throws Error(file); `name` is how messages name the call.
void check_outputs(const CallTensors& tensors, const HeadTensors& heads, const std::string& name);

}  // namespace attnscope
