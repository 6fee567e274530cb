#pragma once

#include <map>
#include <optional>
#include <string>

#include "python/native/array_tensor.h"
#include "python/native/call_maps.h"

namespace attnscope {

/// The arrays of a call. Of one batch item, or one head, the axes in front may be missing.
struct CallArrays {
  DataArray q, k;
  std::optional<DataArray> v, mask;  ///< the mask: bool (may be attended to) or a bias
  std::optional<DataArray> sinks;    ///< [heads], or what broadcasts to [batch, heads, queries]
};

/// A call of arrays, which are read where they are, and waited for (array_tensor). Options: "name",
/// "layout" (as --layout; told by the number of axes unless it is given), "scale" (a number; 1/√d
/// unless it is given), "mask" (none, causal, window:N, window:L,R, block_causal:N, natten:TxHxW),
/// "score", "grid"
/// ("7x12x12"), "text" ("16@start"), "bf16" (arrays of u16 that hold such numbers: "q,k"). Throws
/// Error(usage), and what array_tensor() throws.
CallHandle make_array_call(const CallArrays& arrays,
                           const std::map<std::string, std::string>& options);

}  // namespace attnscope
