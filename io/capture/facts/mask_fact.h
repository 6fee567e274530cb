#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/mask/mask.h"
#include "core/mask/neighbourhood.h"
#include "core/problem/token_grid.h"
#include "core/tensor/tensor_source.h"

namespace attnscope {

/// The forms of a call's mask in a capture; docs/capture-format.md tells what each keeps.
enum class MaskForm : uint8_t {
  none,
  causal,
  tensor,
  valid,
  valid_pairs,
  segments,
  block_causal,
  blocks,
  spans,
  window,
  natten,
};

/// The fact `mask`, with the sizes of its blocks. A value.
struct MaskFact {
  MaskForm form = MaskForm::none;
  int64_t causal_block = 0;         ///< block_causal: tokens
  std::array<int64_t, 2> block{};   ///< blocks: queries and keys, the fact `mask_block`
  std::array<int64_t, 2> window{};  ///< window: keys before and behind the query's, −1: all
  Neighbourhood neighbourhood{};    ///< natten

  /// As the fact has it: "valid", "block_causal:1560", "window:128,0".
  std::string text() const;
  /// Name of the tensor that holds it; empty where none does.
  std::string_view tensor() const;
  /// True where attnscope-capture/1 cannot say it.
  bool is_second_format() const;
};

/// The fact `mask`; nothing where `text` is none.
std::optional<MaskFact> parse_mask_fact(std::string_view text);
/// The fact `mask_block`, "128x64": queries and keys of a block; nothing where `text` is none.
std::optional<std::array<int64_t, 2>> parse_mask_block(std::string_view text);
/// All words of the fact, for messages: "none, causal, …".
std::string mask_fact_words();

/// The mask that the fact says of a call with these tokens, told by `tensor` where it needs one
/// (else null). Throws Error(usage) where the tensor has another type or other axes, and where
/// natten has no grid that queries and keys share, or one that is too small; keys that are all text
/// have no neighbourhoods.
Mask make_mask(const MaskFact& fact, std::shared_ptr<const TensorSource> tensor,
               const TokenGrid& queries, const TokenGrid& keys);

/// True where the option of a call's mask means a pattern, as "none", "causal", "window:N",
/// "window:L,R", "block_causal:N" and "natten:TxHxW" do, and not a file.
bool is_mask_word(std::string_view option);

}  // namespace attnscope
