#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace attnscope {

/// Names that people's own dumps give to what they keep beside q and k (timestep, layer_idx …).
///
/// The fact of the capture format that `key` stands for: "layer_idx" → "layer"; empty where it is
/// none of the names in common use.
std::string fact_of_key(std::string_view key);
/// True where that fact is a number, a few of them or a truth value, which a tensor may hold.
bool is_number_fact(std::string_view key);

/// A name in common use for what shapes an attention map and is no fact of the capture format.
struct ShapingName {
  /// The values of the name that leave the map as it is. `truth`: true and false; `kept`: true, of
  /// a mask of keys.
  enum class Nothing : uint8_t { never, zero, negative, no, truth, kept };
  std::string_view name;
  std::string_view what;     ///< "a learnt logit a head in the denominator"
  std::string_view way_out;  ///< how a map with it is made; empty: there is none yet
  Nothing nothing = Nothing::never;
};
/// Of a key, whole or its last part (attn.sinks), in any case of its letters; null where it is
/// none.
const ShapingName* shaping_name(std::string_view key);
/// True where a value, as TensorFile::metadata() has it, says that there is nothing of the name: a
/// softcap of 0, a window of -1, None.
bool says_nothing(const ShapingName& name, std::string_view text);

/// True where a tensor of this name may be a value (recorded_values.h): its last part names a fact
/// that is a number, or something that shapes a map; sinks and biases by place are tensors
/// (call_sinks.h, call_place_bias.h).
bool names_value(std::string_view key);

/// "block.attn.q" and "block/attn/q" → "q".
std::string_view last_part(std::string_view key);
/// The key as the call names it whose q is `q_key`: less what stands before both, up to a dot or a
/// slash. Beside blocks/3/q, blocks/3/scale and blocks/scale are scale; q/scale of q itself too.
std::string name_beside(std::string_view key, std::string_view q_key);
/// Metadata by these names; of several with one name what stands nearest to q.
std::map<std::string, std::string> values_beside(const std::map<std::string, std::string>& metadata,
                                                 std::string_view q_key);

}  // namespace attnscope
