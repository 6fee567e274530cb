#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/attention_problem.h"
#include "core/products/tokens/text_token.h"
#include "core/tensor/tensor_source.h"
#include "io/capture/facts/mask_fact.h"

namespace attnscope {

/// A tensor of a call, [queries, axes]: where RoPE has its tokens.
inline constexpr std::string_view kPositionIds = "position_ids";

/// A bias that the places of query and key make, beside the mask.
struct PlaceBias {
  Mask mask;                                   ///< none without
  std::shared_ptr<const TensorSource> tensor;  ///< its numbers a head; null without
};

/// True of a shape [heads, t, y, x] of numbers a head, with batch items or without; else they are
/// [heads, places], or of a number a head.
inline bool is_grid_bias(std::span<const int64_t> shape) { return shape.size() >= 4; }

/// One call of a capture as it was recorded. `facts` holds every fact by the name that the capture
/// format gives it, as JSON text, with where it came from.
struct CallEntry {
  struct Fact {
    std::string json;    ///< the value as JSON
    std::string origin;  ///< "recorded", "option --grid", "default", "preset", "guessed: …"
  };
  std::filesystem::path file;
  CallId id;
  std::string layer_name, model, prompt;  ///< empty: not recorded
  std::optional<double> timestep;
  std::string q_state;                           ///< "qk_norm,rope"; empty: not recorded
  std::string approximation;                     ///< the kernel that approximated `out`; else empty
  int64_t head_offset = 0;                       ///< of the first head, in the model
  std::vector<std::vector<std::string>> tokens;  ///< [batch item or 1][text token]; may be empty
  std::map<std::string, Fact> facts;
  std::vector<std::string> unknown_keys;                   ///< metadata and tensors not understood
  std::shared_ptr<const AttentionProblem> problem;         ///< validated
  std::shared_ptr<const TensorSource> lse, out, out_rows;  ///< null where not recorded
  PlaceBias alibi, relative_bias;                          ///< call_place_bias.h
  Mask mask_beside_biases;
  std::shared_ptr<const TensorSource> mask;  ///< the tensor that tells the mask in use, or null
  std::optional<MaskFact> mask_fact;         ///< the mask in use; nothing: no capture can state it
  /// Of the score linear:normaliser, whose problem has queries that were divided: what was
  /// recorded.
  struct Undivided {
    HeadTensor q, k;
    std::shared_ptr<const TensorSource> normaliser;  ///< f32 [B, H, Nq]
  };
  std::optional<Undivided> undivided = {};
  /// How q, k and v that are codes are scaled, and the names of tensors of scales (head_tensors.h).
  std::vector<std::string> codes = {}, scale_names = {};
  std::optional<DType> code_dtype = {};  ///< of q as it was recorded, where that was codes
  /// The dtype that q was recorded in.
  DType recorded_dtype() const {
    return code_dtype.value_or((undivided ? undivided->q : problem->q()).dtype());
  }
  /// Tensors that the token map is made of, by name.
  std::map<std::string, std::shared_ptr<const TensorSource>> map_tensors = {};

  /// The text tokens of a batch item; may be empty.
  std::span<const std::string> tokens_of(int64_t batch) const { return words_of(tokens, batch); }
};

}  // namespace attnscope
