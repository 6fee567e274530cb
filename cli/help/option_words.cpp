#include "cli/help/option_words.h"

#include <algorithm>

#include "core/products/pooled_map.h"
#include "core/reduce/head_fields.h"
#include "io/capture/facts/model_preset.h"
#include "io/pictures/colormap.h"
#include "io/pictures/colour_scale.h"

namespace attnscope {
namespace {

using Words = std::vector<std::string>;

struct OptionWords {
  std::string_view command;  ///< empty: of all others that have the option
  std::string_view option;
  Words (*words)();
};

Words presets() {
  Words words;
  for (const ModelPreset& preset : model_presets()) words.emplace_back(preset.name);
  return words;
}

Words metrics() {
  Words words;
  for (const std::string_view name : metric_names()) words.emplace_back(name);
  return words;
}

Words backends() {
  return {"auto",     "reference", "cpu",        "cuda",     "cpu-amx",    "cpu-amx-fp16",
          "cpu-bf16", "cpu-fma",   "cuda-wgmma", "cuda-mma", "cuda-cublas"};
}

Words patterns() {
  return {"none",   "causal", "window:", "block_causal:",   "spatial:", "temporal", "temporal:",
          "tiles:", "sta:",   "radial:", "vertical-slash:", "topk:",    "topp:"};
}

Words ropes() {
  return {"cogvideox",  "hunyuan", "flux",    "wan",        "ltx",        "ltx:",  "mochi:",
          "gptj",       "llama",   "ltx2",    "cosmos:",    "kandinsky5", "krea2", "hunyuan-image",
          "qwen-image", "flux2",   "z-image", "minimax-h3", "ltx2-audio"};
}

Words stats_arrays() {
  return {"frame_frame",  "column_mass",     "diagonal_profile", "offset_kernel",
          "entropy_rows", "max_weight_rows", "max_key_rows",     "lse_rows"};
}

// A row of a command stands before the one of all others.
constexpr OptionWords kOptionWords[] = {
    {"bench", "--case",
     [] {
       return Words{"lse",  "weights", "metrics", "pyramid", "row",
                    "tile", "export",  "masks",   "threads"};
     }},
    {"diff", "--colour-scale",
     [] {
       return Words{"symlog", "linear"};
     }},
    {"diff", "--product",
     [] {
       return Words{"pooled", "pooled:", "frames", "volume"};
     }},
    {"export", "--dtype",
     [] {
       return Words{"f16", "f32", "u8"};
     }},
    {"export", "--product",
     [] {
       return Words{"weights", "logits", "lse", "rows", "topk", "threshold", "pooled", "output"};
     }},
    {"diff", "--sort",
     [] {
       return Words{"mean_abs",       "max_abs",  "total_variation", "js_mean", "js_max", "cosine",
                    "entropy_change", "lse_mean", "lse_max_abs",     "mass_a",  "mass_b"};
     }},
    {"mask", "--mask", patterns},
    {"merge", "--sort", metrics},
    {"query", "--sort",
     [] {
       return Words{"weight", "text_mass", "video_mass", "frame_mass", "lse"};
     }},
    {"stats", "--sort", metrics},
    {"stats", "--with", stats_arrays},
    {"stats", "--threshold",
     [] {
       return Words{"sink=", "text=", "temporal=", "spatial=", "local="};
     }},
    {"synth", "--dtype",
     [] {
       return Words{"bf16", "f16", "f32"};
     }},
    {"", "--backend", backends},
    {"", "--cache", [] { return Words{"none"}; }},
    {"", "--colormap", colormap_names},
    {"", "--colour-scale", scale_kind_names},
    {"", "--compress",
     [] {
       return Words{"none", "gzip"};
     }},
    {"", "--domain",
     [] {
       return Words{"all", "video", "text", "frame"};
     }},
    {"", "--kind",
     [] {
       return Words{"self", "cross", "joint"};
     }},
    {"", "--layout",
     [] {
       return Words{"bhsd", "bshd", "hsd", "shd", "sd"};
     }},
    {"", "--links",
     [] {
       return Words{"refuse", "follow"};
     }},
    {"", "--mask",
     [] {
       return Words{"none", "causal", "window:", "block_causal:"};
     }},
    {"", "--mean",
     [] {
       return Words{"heads", "layers", "steps", "all"};
     }},
    {"", "--metric", metrics},
    {"", "--order", [] { return Words{"stored", "raster", "yxt", "tiles:", "hilbert", "morton"}; }},
    {"", "--order-keys",
     [] { return Words{"stored", "raster", "yxt", "tiles:", "hilbert", "morton"}; }},
    {"", "--own-mask",
     [] {
       return Words{"none", "causal", "window:", "block_causal:"};
     }},
    {"", "--picture",
     [] { return Words{"matrix", "filmstrip", "frames", "mosaic", "heatmap", "text", "offsets"}; }},
    {"", "--pool", pool_names},
    {"", "--preset", presets},
    {"", "--rope", ropes},
    {"", "--score",
     [] {
       return Words{"softmax", "sigmoid", "linear:elu1", "linear:relu", "linear:normaliser"};
     }},
    {"", "--theme",
     [] {
       return Words{"light", "dark"};
     }},
    {"", "--weighting",
     [] {
       return Words{"none", "value"};
     }},
};

}  // namespace

std::vector<std::string> option_words(std::string_view command, std::string_view option) {
  const auto* const found =
      std::find_if(std::begin(kOptionWords), std::end(kOptionWords), [&](const OptionWords& each) {
        return each.option == option && (each.command == command || each.command.empty());
      });
  return found == std::end(kOptionWords) ? Words{} : found->words();
}

}  // namespace attnscope
