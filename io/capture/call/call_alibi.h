#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/mask/mask.h"
#include "core/tensor/layout.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// The linear biases of a call (core/mask/alibi.h).
struct CallAlibi {
  Mask mask;                                   ///< none without
  std::shared_ptr<const TensorSource> slopes;  ///< [heads] or [batch, heads]; null without
};

/// Those of --alibi (none or FILE[:KEY]), else of the tensor that stands beside q. A note where the
/// option replaces a tensor. Throws Error(usage), Error(file) where they are of another type or
/// shape; Error(value) where a slope is not finite.
CallAlibi call_alibi(const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides, const ReadControl& control,
                     std::vector<std::string>& notes);

}  // namespace attnscope
