#pragma once

#include <string_view>

namespace attnscope {

/// A token's string without the marks of its tokenizer, and what these say about words. Borrows
/// from the string.
struct TokenPiece {
  std::string_view text;        ///< may be empty: the token is nothing but marks
  bool starts_word = false;     ///< ▁ (SentencePiece), Ġ (byte-level BPE), a space
  bool ends_word = false;       ///< </w> (CLIP), a space
  bool continues_word = false;  ///< ## (WordPiece)
};
TokenPiece token_piece(std::string_view token);

}  // namespace attnscope
