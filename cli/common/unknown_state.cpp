#include "cli/common/unknown_state.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/common/fitting_presets.h"
#include "io/capture/unknown_state.h"

namespace attnscope {
namespace {

/// The --rope value of presets whose names begin so (docs/inputs.md); other presets have none, or
/// one that needs more than a name.
constexpr std::pair<std::string_view, std::string_view> kRopes[] = {
    {"anyflow", "wan"},
    {"chronoedit", "wan"},
    {"cogvideox-1.5", "cogvideox"},
    {"cogvideox-5b", "cogvideox"},
    {"cosmos-2.5", "cosmos:scale=1x3x3"},
    {"flux-", "flux"},
    {"flux2", "flux2"},
    {"hunyuanimage", "hunyuan-image"},
    {"hunyuanvideo", "hunyuan"},
    {"kandinsky-5", "kandinsky5"},
    {"kandinsky-6", "kandinsky5:scale=1x2x2"},
    {"krea-2", "krea2"},
    {"ltx-2", "ltx2"},
    {"ltx-video", "ltx"},
    {"minimax-h3", "minimax-h3"},
    {"mochi", "mochi:FILE"},
    {"open-sora-2", "flux"},
    {"qwen-image", "qwen-image"},
    {"sana-video", "wan"},
    {"skyreels-v2", "wan"},
    {"wan2", "wan"},
    {"z-image", "z-image"},
};

std::string_view rope_of(std::string_view preset) {
  for (const auto& [begin, rope] : kRopes) {
    if (preset.starts_with(begin)) return rope;
  }
  return "";
}

/// The embedding of all models that the calls fit; "NAME" where that is none or several.
std::string fitting_rope(std::span<const SelectedCall> calls) {
  std::set<std::string_view> ropes;
  for (const SelectedCall& selected : calls) {
    if (!is_state_unknown(*selected.call)) continue;
    for (const FittingPreset& preset : fitting_presets(*selected.call->problem)) {
      ropes.insert(rope_of(preset.name));
    }
  }
  const bool is_one = ropes.size() == 1 && !ropes.begin()->empty();
  return is_one ? std::string(*ropes.begin()) : "NAME";
}

}  // namespace

std::string unknown_state_text(std::span<const SelectedCall> calls) {
  int64_t unknown = 0;
  for (const SelectedCall& selected : calls) unknown += is_state_unknown(*selected.call) ? 1 : 0;
  if (unknown == 0) return "";
  return fmt::format(
      "{} of {} calls do not record what was applied to q and k (q_state): taken before RoPE or QK "
      "norm, their maps are not the model's; --rope {} applies RoPE, --as q_state=final says that "
      "they are final",
      unknown, calls.size(), fitting_rope(calls));
}

void tell_unknown_state(std::span<const SelectedCall> calls, const Console& console) {
  const std::string text = unknown_state_text(calls);
  if (!text.empty()) console.say("note: " + text);
}

std::vector<SelectedCall> select_and_tell(const Capture& capture, const SelectionOptions& options,
                                          const Console& console) {
  std::vector<std::string> missing;
  std::vector<SelectedCall> calls = capture.select(parse_selection(options), &missing);
  for (const std::string& line : missing) console.warn("warning: " + line);
  tell_unknown_state(calls, console);
  return calls;
}

}  // namespace attnscope
