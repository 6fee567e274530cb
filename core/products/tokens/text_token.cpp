#include "core/products/tokens/text_token.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

/// How many places or near tokens a message lists.
constexpr size_t kListed = 8;

/// A piece of which the text is a copy in lower case.
struct WorkItem {
  std::string text;
  TokenPiece marks;
};

/// The lower-case letter of a capital one: ASCII, and of the two-byte letters of UTF-8 those whose
/// capitals stand at a fixed distance (Latin-1, Latin Extended-A, Greek, Cyrillic).
uint32_t lower_letter(uint32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 0x20;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 0x20;
  const bool even_capitals = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14a && c <= 0x177);
  if (even_capitals) return c | 1;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return c + (c & 1);
  if (c >= 0x391 && c <= 0x3a9) return c + 0x20;
  if (c >= 0x410 && c <= 0x42f) return c + 0x20;
  if (c >= 0x400 && c <= 0x40f) return c + 0x50;
  return c;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const bool pair = (first & 0xe0) == 0xc0 && i + 1 < text.size();
    if (!pair) {
      lower += first < 0x80 ? static_cast<char>(lower_letter(first)) : text[i];
      continue;
    }
    const auto second = static_cast<unsigned char>(text[++i]);
    const uint32_t letter = lower_letter((first & 0x1fu) << 6 | (second & 0x3fu));
    lower += static_cast<char>(0xc0 | letter >> 6);
    lower += static_cast<char>(0x80 | (letter & 0x3f));
  }
  return lower;
}

WorkItem parse_piece(std::string_view token) {
  const TokenPiece piece = token_piece(token);
  return {lower_case(piece.text), piece};
}

/// Where the pieces from `first` on that spell `word` end; nothing where they spell something else.
/// `hashes`: the tokenizer marks the pieces that go on with a word.
std::optional<size_t> word_end(const std::string& word, const std::vector<WorkItem>& pieces,
                               size_t first, bool hashes) {
  std::string spelt;
  for (size_t i = first; i < pieces.size(); ++i) {
    const WorkItem& piece = pieces[i];
    if (piece.text.empty()) break;
    const bool joins = i == first || (!piece.marks.starts_word && !pieces[i - 1].marks.ends_word &&
                                      (piece.marks.continues_word || !hashes));
    if (!joins) break;
    spelt += piece.text;
    if (!word.starts_with(spelt)) break;
    if (spelt == word) return i + 1;
  }
  return std::nullopt;
}

/// The runs of pieces that spell these words one after the other, in order.
std::vector<IndexRange> find_words(std::span<const std::string> words,
                                   const std::vector<WorkItem>& pieces) {
  const bool hashes = std::any_of(pieces.begin(), pieces.end(),
                                  [](const WorkItem& p) { return p.marks.continues_word; });
  std::vector<IndexRange> places;
  for (size_t first = 0; first < pieces.size(); ++first) {
    std::optional<size_t> end = first;
    for (const std::string& word : words) {
      if (end != first && *end < pieces.size() && pieces[*end].marks.continues_word) end.reset();
      if (end) end = word_end(word, pieces, *end, hashes);
      if (!end) break;
    }
    if (end) places.push_back({static_cast<int64_t>(first), static_cast<int64_t>(*end)});
  }
  return places;
}

/// The words between the spaces of a text.
std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

/// `4 "▁dog"`, `4-5 "▁dra" "gon"`.
std::string describe_place(IndexRange place, const PromptText& prompt) {
  std::string text = std::to_string(place.begin);
  if (place.size() > 1) text += "-" + std::to_string(place.end - 1);
  for (int64_t i = place.begin; i < place.end; ++i) {
    text += " \"" + one_line(prompt.tokens[static_cast<size_t>(i)]) + "\"";
  }
  return text;
}

std::string list_places(const std::vector<IndexRange>& places, const PromptText& prompt) {
  std::string text;
  for (size_t i = 0; i < std::min(places.size(), kListed); ++i) {
    text += (i == 0 ? "" : ", ") + describe_place(places[i], prompt);
  }
  return text + (places.size() > kListed ? " ..." : "");
}

/// Tokens that hold the word, are held by it, or differ by a letter or two; else the first ones.
std::string list_near(const std::string& word, const std::vector<WorkItem>& pieces,
                      const PromptText& prompt) {
  std::vector<std::string> texts;
  for (const WorkItem& piece : pieces) texts.push_back(piece.text);
  const std::string nearest = nearest_word(word, texts);
  std::vector<IndexRange> near;
  std::vector<IndexRange> first;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    if (text.empty()) continue;
    const auto at = static_cast<int64_t>(i);
    first.push_back({at, at + 1});
    const bool shares = text.size() > 1 && (text.find(word) != std::string::npos ||
                                            word.find(text) != std::string::npos);
    if (shares || text == nearest) near.push_back({at, at + 1});
  }
  if (!near.empty()) return "near it: " + list_places(near, prompt);
  return "the prompt has " + list_places(first, prompt);
}

/// `N` or `A-B`; nothing where the text is no number.
std::optional<IndexRange> parse_numbers(const std::string& text) {
  std::array<int64_t, 2> ends{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < ends.size(); ++i) {
    if (at == end || *at < '0' || *at > '9') return std::nullopt;
    const auto [stop, error] = std::from_chars(at, end, ends[i]);
    if (error != std::errc()) return std::nullopt;
    at = stop;
    if (i == 0 && at == end) return IndexRange{ends[0], ends[0] + 1};
    if (i == 0 && *at++ != '-') return std::nullopt;
  }
  if (at != end || ends[1] == INT64_MAX) return std::nullopt;
  return IndexRange{ends[0], ends[1] + 1};
}

}  // namespace

bool is_token_number(const std::string& text) { return parse_numbers(text).has_value(); }

IndexRange resolve_text_token(const std::string& text, const PromptText& prompt) {
  const std::string option = "--text-token " + one_line(text) + ": ";
  if (prompt.length == 0) {
    throw usage_error(option + prompt.where + " has no text tokens; give --text SPAN");
  }
  const std::string last = std::to_string(prompt.length - 1);
  if (const auto numbers = parse_numbers(text)) {
    if (numbers->empty() || numbers->end > prompt.length) {
      throw usage_error(option + "outside the text of " + prompt.where + " (valid 0 to " + last +
                        ")");
    }
    return *numbers;
  }
  if (prompt.tokens.empty()) {
    throw usage_error(option + "no token strings were recorded for " + prompt.where +
                      "; give a number from 0 to " + last +
                      ", or add them with attnscope convert --tokens FILE");
  }
  std::vector<WorkItem> pieces;
  for (const std::string& token : prompt.tokens) pieces.push_back(parse_piece(token));
  const std::string word = parse_piece(text).text;
  if (word.empty()) throw usage_error(option + "names no token; give a word or a number");
  std::vector<IndexRange> places = find_words(std::span(&word, 1), pieces);
  if (places.empty()) places = find_words(split_words(word), pieces);
  if (places.size() == 1) return places.front();
  if (places.empty()) {
    throw usage_error(option + "no token of " + prompt.where + " is spelt so; " +
                      list_near(word, pieces, prompt));
  }
  throw usage_error(option + std::to_string(places.size()) + " places in " + prompt.where + ": " +
                    list_places(places, prompt) + "; give one by its number");
}

std::span<const std::string> words_of(std::span<const std::vector<std::string>> lists,
                                      int64_t batch) {
  if (lists.empty()) return {};
  return lists[lists.size() == 1 ? 0 : static_cast<size_t>(batch)];
}

std::vector<int64_t> choose_text_tokens(std::span<const std::string> asked, const TokenGrid& tokens,
                                        int64_t batch, const PromptText& prompt) {
  std::vector<int64_t> chosen;
  for (const std::string& text : asked) {
    const IndexRange places = resolve_text_token(text, prompt);
    for (int64_t i = places.begin; i < places.end; ++i) chosen.push_back(i);
  }
  if (!asked.empty()) return chosen;
  const IndexRange text = tokens.text_range();
  for (int64_t i = 0; i < text.size(); ++i) {
    if (tokens.segment(text.begin + i, batch) != Segment::padding) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace attnscope
