#pragma once

namespace attnscope {

/// How pictures say that nobody recorded what was applied to q and k: from before RoPE or a norm,
/// their map is not the model's.
inline constexpr const char* kUnknownState = "q_state not recorded";

}  // namespace attnscope
