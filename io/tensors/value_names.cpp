#include "io/tensors/value_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "io/tensors/recorded_values.h"

namespace attnscope {
namespace {

struct KnownKey {
  std::string_view key, fact;
  bool is_number;
};

constexpr std::array kKnownKeys{
    KnownKey{"step", "step", true},
    KnownKey{"step_idx", "step", true},
    KnownKey{"step_index", "step", true},
    KnownKey{"iteration", "step", true},
    KnownKey{"timestep", "timestep", true},
    KnownKey{"layer", "layer", true},
    KnownKey{"layer_idx", "layer", true},
    KnownKey{"layer_index", "layer", true},
    KnownKey{"layer_id", "layer", true},
    KnownKey{"block_idx", "layer", true},
    KnownKey{"layer_name", "layer_name", false},
    KnownKey{"scale", "scale", true},
    KnownKey{"sm_scale", "scale", true},
    KnownKey{"softmax_scale", "scale", true},
    KnownKey{"scaling", "scale", true},
    KnownKey{"is_causal", "mask", true},
    KnownKey{"causal", "mask", true},
    KnownKey{"layout", "layout", false},
    KnownKey{"grid", "grid", true},
    KnownKey{"text", "text", false},
    KnownKey{"text_valid", "text_valid", true},
    KnownKey{"tokens", "tokens", false},
    KnownKey{"kind", "kind", false},
    KnownKey{"branches", "branches", false},
    KnownKey{"axes", "axes", false},
    KnownKey{"model", "model", false},
    KnownKey{"prompt", "prompt", false},
    KnownKey{"q_state", "q_state", false},
    KnownKey{"head_offset", "head_offset", true},
    KnownKey{"extra", "extra", false},
    KnownKey{"softcap", "softcap", true},
    KnownKey{"soft_cap", "softcap", true},
    KnownKey{"logits_soft_cap", "softcap", true},
    KnownKey{"logit_soft_cap", "softcap", true},
    KnownKey{"logits_softcap", "softcap", true},
    KnownKey{"logit_softcap", "softcap", true},
    KnownKey{"logit_cap", "softcap", true},
    KnownKey{"logits_cap", "softcap", true},
    KnownKey{"attn_logit_softcapping", "softcap", true},
    KnownKey{"attn_logits_soft_cap", "softcap", true},
    KnownKey{"q_scale", "q_scale", true},
    KnownKey{"q_descale", "q_scale", true},
    KnownKey{"k_scale", "k_scale", true},
    KnownKey{"k_descale", "k_scale", true},
    KnownKey{"v_scale", "v_scale", true},
    KnownKey{"v_descale", "v_scale", true},
};

constexpr std::string_view kSink = "a learnt logit a head in the denominator";
constexpr std::string_view kSinkWay = "--sinks NUMBER|FILE:KEY tells them";
constexpr std::string_view kCapWay = "--score softcap:C caps them at C";
constexpr std::string_view kCap = "the logits are capped, c*tanh(s/c), before the softmax";
constexpr std::string_view kBias = "is added to the logits";
constexpr std::string_view kBiasWay = "--mask FILE:KEY adds a tensor of the map's shape";
constexpr std::string_view kSlopes = "the logits fall with the distance by a slope a head";
constexpr std::string_view kAlibi = "alibi_slopes";
constexpr std::string_view kSlopesWay = "--alibi FILE:KEY tells the slopes";
constexpr std::string_view kRelative = "relative_bias";
constexpr std::string_view kRelativeWay =
    "--relative-bias FILE:KEY adds one a difference of places, --mask FILE:KEY one of the map's "
    "shape";
constexpr std::string_view kWindow = "keys far from the query are left out";
constexpr std::string_view kWindowWay =
    "--mask window:L,R keeps L keys before and R behind, --mask FILE any";
constexpr std::string_view kPadding = "keys are left out";
constexpr std::string_view kPaddingWay =
    "--mask FILE:KEY takes a bool tensor [B, Nk] or of the map's axes, true for keys that count";
constexpr std::string_view kDropout = "weights are dropped at random";
constexpr std::string_view kCausal = "keys behind the query are left out";
constexpr std::string_view kScale = "the logits are multiplied by it";

using Nothing = ShapingName::Nothing;

constexpr std::array kShapingNames{
    ShapingName{"sinks", kSink, kSinkWay},
    ShapingName{"sink", kSink, kSinkWay},
    ShapingName{"s_aux", kSink, kSinkWay},
    ShapingName{"attn_sink", kSink, kSinkWay},
    ShapingName{"attn_sinks", kSink, kSinkWay},
    ShapingName{"attention_sink", kSink, kSinkWay},
    ShapingName{"attention_sinks", kSink, kSinkWay},
    ShapingName{"attention_sink_bias", kSink, kSinkWay},
    ShapingName{"sink_logits", kSink, kSinkWay},
    ShapingName{"softmax_sink", kSink, kSinkWay},
    ShapingName{"learnable_sink", kSink, kSinkWay},
    ShapingName{"softcap", kCap, kCapWay, Nothing::zero},
    ShapingName{"soft_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logits_soft_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logit_soft_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logits_softcap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logit_softcap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logit_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"logits_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"attn_logit_softcapping", kCap, kCapWay, Nothing::zero},
    ShapingName{"attn_logits_soft_cap", kCap, kCapWay, Nothing::zero},
    ShapingName{"attn_bias", kBias, kBiasWay},
    ShapingName{"attention_bias", kBias, kBiasWay, Nothing::truth},
    ShapingName{"position_bias", kBias, kBiasWay},
    ShapingName{"relative_position_bias", kBias, kRelativeWay},
    ShapingName{"rel_pos_bias", kBias, kRelativeWay},
    ShapingName{kRelative, kBias, kRelativeWay},
    ShapingName{"score_bias", kBias, kBiasWay},
    ShapingName{"alibi", kSlopes, kSlopesWay, Nothing::no},
    ShapingName{"alibi_bias", kBias, kBiasWay},
    ShapingName{kAlibi, kSlopes, kSlopesWay},
    ShapingName{"window_size", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"window_left", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"window_right", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"window_size_left", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"window_size_right", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"sliding_window", kWindow, kWindowWay, Nothing::negative},
    ShapingName{"attention_chunk", kWindow, kWindowWay, Nothing::zero},
    ShapingName{"key_padding_mask", kPadding, kPaddingWay, Nothing::kept},
    ShapingName{"padding_mask", kPadding, kPaddingWay, Nothing::kept},
    ShapingName{"encoder_attention_mask", kPadding, kPaddingWay, Nothing::kept},
    ShapingName{"key_mask", kPadding, kPaddingWay, Nothing::kept},
    ShapingName{"block_mask", kPadding, kPaddingWay},
    ShapingName{"head_mask", "weights of heads are multiplied by it", ""},
    ShapingName{"score_mod", "changes the logits", ""},
    ShapingName{"dropout_p", kDropout, "", Nothing::zero},
    // In files of the capture format, whose own names are mask and scale.
    ShapingName{"is_causal", kCausal, "--mask causal", Nothing::no},
    ShapingName{"causal", kCausal, "--mask causal", Nothing::no},
    ShapingName{"sm_scale", kScale, "--scale"},
    ShapingName{"softmax_scale", kScale, "--scale"},
    ShapingName{"scaling", kScale, "--scale"},
};

const KnownKey* find_key(std::string_view key) {
  const auto found = std::find_if(kKnownKeys.begin(), kKnownKeys.end(),
                                  [&](const KnownKey& known) { return known.key == key; });
  return found == kKnownKeys.end() ? nullptr : &*found;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Parts of a pipeline that are no transformer: what stands under them shapes no map of it.
constexpr std::array<std::string_view, 8> kOtherModules{
    "vae",       "text_encoder", "image_encoder", "tokenizer",
    "scheduler", "optimizer",    "vocoder",       "clip"};

/// "text_encoder.config.sliding_window", "vae/scaling".
bool is_of_another_module(std::string_view key) {
  for (size_t begin = 0; begin < key.size();) {
    const size_t end = std::min(key.find_first_of("./", begin), key.size());
    const std::string part = lower(key.substr(begin, end - begin));
    if (end < key.size() &&
        std::any_of(kOtherModules.begin(), kOtherModules.end(),
                    [&](std::string_view of) { return part.starts_with(of); })) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

bool is_nothing(Nothing nothing, const Json& value) {
  if (value.is_array()) {
    return !value.empty() && std::all_of(value.begin(), value.end(), [&](const auto& each) {
      return is_nothing(nothing, each);
    });
  }
  if (value.is_null() || value == "none") return true;
  if (value.is_boolean()) {
    if (nothing == Nothing::kept) return value == true;
    return nothing == Nothing::truth || (nothing != Nothing::never && value == false);
  }
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  switch (nothing) {
    case Nothing::zero:
    case Nothing::no:
      return number == 0;
    case Nothing::negative:
      return number < 0;
    case Nothing::never:
    case Nothing::truth:
    case Nothing::kept:
      break;
  }
  return false;
}

}  // namespace

std::string fact_of_key(std::string_view key) {
  const KnownKey* known = find_key(key);
  return known == nullptr ? "" : std::string(known->fact);
}

bool is_number_fact(std::string_view key) {
  const KnownKey* known = find_key(key);
  return known != nullptr && known->is_number;
}

const ShapingName* shaping_name(std::string_view key) {
  if (is_of_another_module(key)) return nullptr;
  const std::string name = lower(last_part(key));
  const auto found = std::find_if(kShapingNames.begin(), kShapingNames.end(),
                                  [&](const ShapingName& known) { return known.name == name; });
  return found == kShapingNames.end() ? nullptr : &*found;
}

bool says_nothing(const ShapingName& name, std::string_view text) {
  return is_nothing(name.nothing, value_of_text(std::string(text)));
}

bool names_value(std::string_view key) {
  const ShapingName* const shaping = shaping_name(key);
  const bool is_tensor =
      shaping != nullptr &&
      (shaping->what == kSink || last_part(key) == kAlibi || last_part(key) == kRelative);
  return is_number_fact(last_part(key)) || (shaping != nullptr && !is_tensor);
}

std::string_view last_part(std::string_view key) {
  const size_t at = key.find_last_of("./");
  return at == std::string_view::npos ? key : key.substr(at + 1);
}

std::string name_beside(std::string_view key, std::string_view q_key) {
  const std::string outer = std::string(q_key) + "/";
  size_t begin = 0;
  for (size_t i = 0; i < key.size() && i < outer.size() && key[i] == outer[i]; ++i) {
    if (key[i] == '.' || key[i] == '/') begin = i + 1;
  }
  return std::string(key.substr(begin));
}

std::map<std::string, std::string> values_beside(const std::map<std::string, std::string>& metadata,
                                                 std::string_view q_key) {
  std::map<std::string, std::string> values;
  std::map<std::string, size_t> nearest;  // by name what stands before it
  for (const auto& [key, text] : metadata) {
    const std::string name = name_beside(key, q_key);
    const size_t before = key.size() - name.size();
    const auto [known, is_new] = nearest.emplace(name, before);
    if (!is_new && known->second > before) continue;
    known->second = before;
    values[name] = text;
  }
  return values;
}

}  // namespace attnscope
