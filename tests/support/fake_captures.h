#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/temporary_folder.h"
#include "viewer/view/heads/head_picker.h"
#include "viewer/view/view_state.h"

namespace attnscope::test {

/// The message of the Error(usage) that `call` throws; empty where it throws nothing.
inline std::string usage_text(const std::function<void()>& call) {
  return thrown_text(ErrorCode::usage, call);
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A 2×3×4 video with two words before it: 26 tokens, 2 batch items (uncond, cond), 3 heads; steps
/// 0 and 10 with layers 1 and 3.
inline void write_video_capture(const TemporaryFolder& folder) {
  for (const char* step : {"0", "10"}) {
    for (const char* layer : {"1", "3"}) {
      CallFile()
          .pair({2, 3, 26, 4}, {2, 3, 26, 4})
          .fact("grid", "2x3x4")
          .fact("text", "2@start")
          .fact("tokens", "[\"\u2581red\",\"dog</w>\"]")
          .fact("branches", R"(["uncond","cond"])")
          .fact("step", step)
          .fact("layer", layer)
          .write(folder.path() / (std::string("s") + step + "l" + layer + ".safetensors"));
    }
  }
}

/// Sizes as of two calls: a joint one of 1000 tokens with 4 heads, and a cross one, 1000 queries on
/// 20 keys; then one like the first.
inline ViewLimits three_calls() {
  return {{{1000, 1000, 2, 4, true}, {1000, 20, 2, 4, false}, {1000, 1000, 2, 4, true}}};
}

}  // namespace attnscope::test
