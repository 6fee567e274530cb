#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

/// Takes `mark` off the front; whether it was there.
bool take_front(std::string_view& text, std::string_view mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(mark.size());
  return true;
}

bool take_back(std::string_view& text, std::string_view mark) {
  if (!text.ends_with(mark)) return false;
  text.remove_suffix(mark.size());
  return true;
}

}  // namespace

TokenPiece token_piece(std::string_view token) {
  TokenPiece piece;
  piece.continues_word = token.size() > 2 && take_front(token, "##");
  while (take_front(token, "\u2581") || take_front(token, "\u0120") || take_front(token, " ")) {
    piece.starts_word = true;
  }
  while (take_back(token, "</w>") || take_back(token, " ")) piece.ends_word = true;
  piece.text = token;
  return piece;
}

}  // namespace attnscope
