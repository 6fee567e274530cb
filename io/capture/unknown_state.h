#pragma once

#include <span>
#include <string>

#include "core/problem/unknown_state.h"
#include "io/capture/capture.h"

namespace attnscope {

inline bool is_state_unknown(const CallEntry& call) { return call.q_state.empty(); }

/// kUnknownState where that is so of any call; else empty.
inline std::string state_text(std::span<const SelectedCall> calls) {
  for (const SelectedCall& selected : calls) {
    if (is_state_unknown(*selected.call)) return kUnknownState;
  }
  return "";
}

}  // namespace attnscope
