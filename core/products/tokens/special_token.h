#pragma once

#include <string_view>

namespace attnscope {

/// True of a token of the tokenizer's own that says nothing: "<pad>", "</s>", "<|endoftext|>",
/// "[CLS]", an empty one. Bytes as "<0x0A>" are text.
bool is_special_token(std::string_view token);
/// True of such a token that pads: "<pad>", "[PAD]", "<|pad|>", an empty one.
bool is_padding_token(std::string_view token);

}  // namespace attnscope
