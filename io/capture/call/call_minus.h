#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/capture/call/call_entry.h"

namespace attnscope {

/// The fact `minus` of differential attention (Ye et al. 2024, arXiv:2410.05258): `factor` times
/// the result of the call `slot` of the same block is taken from the call's. Each of both is a
/// softmax of its own.
struct CallMinus {
  std::string slot;
  double factor = 0;
  /// Where heads of one result are taken from each other: head h + heads of `slot` from each head
  /// h < heads, by the model's numbers, and nothing from heads `heads` and later. Nothing: each
  /// head of `slot` from the call's own.
  std::optional<int64_t> heads;
};

/// That of an opened call; nothing where nothing is taken from its result.
std::optional<CallMinus> minus_of(const CallEntry& call);

}  // namespace attnscope
