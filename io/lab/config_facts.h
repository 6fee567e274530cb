#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace attnscope {

/// What a plan does not say of the model and the run. 0: not told. Then layers and heads are as
/// many as the plan counts, which a line says; where it has no numbers of them, or has steps, whose
/// number it never says, and the format needs them, that is an error.
struct ConfigFacts {
  int64_t steps = 0, layers = 0, heads = 0;
  std::string slot = {};           ///< of an attention, where the plan has edits of several
  std::array<int64_t, 3> tiles{};  ///< sta: of the video, T x H x W: the window of dense heads
  std::array<int64_t, 3> tile{6, 8, 8};          ///< sta: cells of the kernel's tiles
  std::string modules = "blocks.{layer}.attn1";  ///< sparge: path of a layer's tuned module
};

}  // namespace attnscope
