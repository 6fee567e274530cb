#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/lab/config_facts.h"
#include "io/lab/edit_plan.h"

namespace attnscope {

/// Configurations that programs which run a plan's edits read.
enum class ConfigFormat : uint8_t {
  sta,        ///< FastVideo's and sglang's windows: {"step_layer_head": [t, y, x]}, in tiles
  vllm_omni,  ///< vLLM-Omni's diffusion_attention_config: presets, layouts, a schedule
  lightx2v,   ///< LightX2V's settings of the self attention
  sparge      ///< SpargeAttn's tuned modules as JSON; torch.save of tensors makes the file of it
};

/// "sta", "vllm-omni", "lightx2v" or "sparge". Throws Error(usage).
ConfigFormat parse_config_format(std::string_view text, std::string_view option = "--format");

struct KernelConfig {
  std::string text;                 ///< of the file
  std::vector<std::string> losses;  ///< lines: what of the plan it does not say
};

/// The plan for another program, of the self (or joint) attention of its main stack of layers.
/// What a format cannot say of heads, layers or steps apart is widened: all get the least edit that
/// keeps what each of theirs keeps, and stay dense where there is none, or the format has no word
/// for an edit. Throws Error(usage) where `facts` lacks what the format needs.
KernelConfig write_config(const EditPlan& plan, ConfigFormat format, const ConfigFacts& facts);

}  // namespace attnscope
