#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The tensors of one call, wherever they stand; null where there is none.
struct CallTensors {
  std::shared_ptr<const TensorSource> q, k, v, lse, mask, out, out_rows;
  /// Masks that are told by less than their entries (facts/mask_fact.h).
  std::shared_ptr<const TensorSource> mask_valid, mask_segments, mask_blocks, mask_spans;
  /// What codes of one byte in q, k and v are multiplied by (code_tensors.h).
  std::shared_ptr<const TensorSource> q_scale, k_scale, v_scale;
  /// What values of packed codes are multiplied by as well (block_codes.h).
  std::shared_ptr<const TensorSource> q_scale_2, k_scale_2, v_scale_2;
  /// Logits that stand in the denominator alone (call_sinks.h).
  std::shared_ptr<const TensorSource> sinks;
  /// Numbers of biases by place (call_place_bias.h).
  std::shared_ptr<const TensorSource> alibi_slopes, relative_bias;
  /// The divisor of each query of the score linear:normaliser.
  std::shared_ptr<const TensorSource> normaliser;
  /// Where the model's caller places the tokens of the sequence (rope_option.h).
  std::shared_ptr<const TensorSource> position_ids;
  /// Where packed sequences begin and end (packed_sequences.h); k's are q's where there are none.
  std::shared_ptr<const TensorSource> cu_seqlens_q, cu_seqlens_k;
  /// Tensors of a file in the capture format that only a token map may name.
  std::map<std::string, std::shared_ptr<const TensorSource>> others = {};
};

/// The tensors of a call as they were found in one file.
struct FoundTensors {
  CallTensors tensors;
  std::string q_key, k_key;
  /// The order of the axes of q, k and v, where a fused tensor tells it: "bshd", "shd".
  std::string layout;
  std::vector<std::string> unknown;  ///< what is none of them: "tensor KEY"
  std::vector<std::string> notes;  ///< of what is fused, and what is left out for it cannot be read
};

/// The names by which people call the tensors of an attention call, the capture format's own name
/// first. `role` is that name: q, k, v, mask, sinks, alibi_slopes, relative_bias, lse, out,
/// out_rows, position_ids, cu_seqlens_q, cu_seqlens_k; or qkv, kv of a fused tensor.
const std::vector<std::string>& usual_names(std::string_view role);

/// A tensor that tells a mask, and where it stands.
struct MaskTensor {
  std::string_view name;
  std::shared_ptr<const TensorSource> CallTensors::*place;
};
std::span<const MaskTensor> mask_tensors();

/// A tensor that may be stored as codes of one byte, which its scales multiply (code_tensors.h).
struct CodeRole {
  std::string_view name;  ///< q, k, v
  std::shared_ptr<const TensorSource> CallTensors::*codes;
  std::shared_ptr<const TensorSource> CallTensors::*scales;
  /// Names of its scales in common use, the capture format's first.
  std::array<std::string_view, 4> scale_names;
  std::shared_ptr<const TensorSource> CallTensors::*factor;
  /// The same of the scale of the whole tensor beside them.
  std::array<std::string_view, 3> factor_names;
};
/// Of q, k and v.
std::span<const CodeRole> code_roles();
/// Adds the scales that the file has for the role's codes of one byte. Gives their keys.
std::vector<std::string> add_scales(const CodeRole& role, const TensorFile& file,
                                    CallTensors& tensors);

/// The tensors of a call in the capture format, those of its second version where the file is of
/// that (`second`). Throws Error(file) where q or k is missing.
FoundTensors format_tensors(const TensorFile& file, bool second);

/// The tensors of a call in a file of no particular format, by their usual names: as a whole key,
/// or as the last part of exactly one (block.attn.q, /attn/q); or q, k and v in one (qkv), or k and
/// v (kv). What a map is not made of (v, lse,
/// out) is left out where it cannot be read. Throws Error(file) that lists what there is where q or
/// k cannot be told.
FoundTensors usual_tensors(const TensorFile& file);
/// True where the keys name both q and k.
bool tell_call(const std::vector<std::string>& keys);

}  // namespace attnscope
