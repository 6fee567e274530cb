#include "core/products/tokens/spelt_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/products/tokens/special_token.h"
#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

/// The code points of UTF-8; a byte that is none of it stands for itself.
std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 1 || i + length > text.size()) {
      points.push_back(first);
      ++i;
      continue;
    }
    uint32_t point = first & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
    }
    points.push_back(point);
    i += length;
  }
  return points;
}

struct PointRange {
  uint32_t first, last;
};

bool is_in(uint32_t point, std::span<const PointRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const PointRange& range) {
    return point >= range.first && point <= range.last;
  });
}

bool is_mark(uint32_t point) {
  if (point < 0x80) return std::isalnum(static_cast<int>(point)) == 0;
  constexpr PointRange kMarks[] = {{0xa1, 0xa9},     {0xab, 0xb1},     {0xb6, 0xb8},
                                   {0xbb, 0xbb},     {0xbf, 0xbf},     {0x2010, 0x205e},
                                   {0x3001, 0x3003}, {0x3008, 0x3020}, {0xff01, 0xff0f},
                                   {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65}};
  return is_in(point, kMarks);
}

/// Hyphen and apostrophes.
bool is_joint(uint32_t point) {
  return point == '-' || point == '\'' || point == 0x2019 || point == 0x2010 || point == 0x2011;
}

/// Thai and Lao, Tibetan to Khmer, and Chinese and Japanese.
bool has_no_spaces(uint32_t point) {
  constexpr PointRange kScripts[] = {{0x0e00, 0x0fff},  {0x1000, 0x109f}, {0x1780, 0x17ff},
                                     {0x2e80, 0xa4cf},  {0xf900, 0xfaff}, {0xff66, 0xff9f},
                                     {0x20000, 0x3ffff}};
  return is_in(point, kScripts);
}

/// A token and what it says of the word that it is of.
struct Piece {
  explicit Piece(const std::string& token)
      : marks(token_piece(token)),
        special(is_special_token(token)),
        points(code_points(marks.text)) {
    const bool all_marks = std::all_of(points.begin(), points.end(), is_mark);
    punctuation = all_marks;
    joint = !points.empty() && std::all_of(points.begin(), points.end(), is_joint);
  }
  bool is_marked() const { return marks.starts_word || marks.ends_word || marks.continues_word; }

  TokenPiece marks;
  bool special, punctuation = false, joint = false;
  std::vector<uint32_t> points;
};

/// True where `next` goes on with the word that ends with `last`. `hashes`: the tokenizer marks the
/// pieces that do.
bool goes_on(const Piece& last, const Piece& next, bool hashes) {
  if (last.special || next.special || last.points.empty() || next.points.empty()) return false;
  if (next.marks.starts_word || last.marks.ends_word) return false;
  if (hashes && !next.marks.continues_word) return false;
  if (has_no_spaces(last.points.back()) || has_no_spaces(next.points.front())) return false;
  return last.punctuation == next.punctuation || last.joint || next.joint;
}

}  // namespace

std::vector<SpeltWord> spelt_words(std::span<const std::string> tokens) {
  std::vector<Piece> pieces;
  for (const std::string& token : tokens) pieces.emplace_back(token);
  const bool hashes = std::any_of(pieces.begin(), pieces.end(),
                                  [](const Piece& piece) { return piece.marks.continues_word; });
  const bool marked = std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
    return !piece.special && piece.is_marked();
  });
  std::vector<SpeltWord> words;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i == 0 || !marked || !goes_on(pieces[i - 1], piece, hashes)) {
      const auto at = static_cast<int64_t>(i);
      words.push_back({"", {at, at}, SpeltWord::Kind::punctuation});
    }
    SpeltWord& word = words.back();
    word.text += piece.special ? std::string_view(tokens[i]) : piece.marks.text;
    ++word.tokens.end;
    if (piece.special) word.kind = SpeltWord::Kind::special;
    if (!piece.special && !piece.punctuation) word.kind = SpeltWord::Kind::word;
  }
  return words;
}

}  // namespace attnscope
