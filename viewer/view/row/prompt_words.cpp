#include "viewer/view/row/prompt_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/products/tokens/special_token.h"
#include "core/products/tokens/text_token.h"
#include "core/products/tokens/token_piece.h"

namespace attnscope {
namespace {

char lower_ascii(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool holds_word(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower_ascii(a) == lower_ascii(b); }) != text.end();
}

double at_or_nan(std::span<const double> numbers, size_t at) {
  return at < numbers.size() ? numbers[at] : std::numeric_limits<double>::quiet_NaN();
}

double or_zero(double mass) { return std::isnan(mass) ? 0 : mass; }

/// "5", "3-7": nothing where it is no such thing.
std::optional<IndexRange> numbers_of(std::string_view part) {
  int64_t first = 0, last = 0;
  const char* const end = part.data() + part.size();
  auto read = std::from_chars(part.data(), end, first);
  if (read.ec != std::errc() || first < 0) return std::nullopt;
  last = first;
  if (read.ptr != end) {
    if (*read.ptr != '-') return std::nullopt;
    read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end || last < first) return std::nullopt;
  }
  // Ranges end behind their last number.
  if (last == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return IndexRange{first, last + 1};
}

/// resolve_text_token() names the option of the command line that it is for.
IndexRange find_phrase(const TokenNames& names, const std::string& text) {
  constexpr std::string_view kOption = "--text-token";
  const PromptText prompt{names.words, names.grid->text_range().size(), std::string(names.where)};
  try {
    return resolve_text_token(text, prompt);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (!message.starts_with(kOption)) throw;
    throw Error(error.code(), "word" + std::string(message.substr(kOption.size())));
  }
}

}  // namespace

std::vector<PromptWord> prompt_words(const TokenNames& names) {
  const TokenGrid& grid = *names.grid;
  const IndexRange text = grid.text_range();
  std::vector<PromptWord> words;
  for (int64_t token = text.begin; token < text.end; ++token) {
    PromptWord word;
    word.number = token - text.begin;
    const bool named = word.number < static_cast<int64_t>(names.words.size());
    if (named) {
      const std::string& spelt = names.words[static_cast<size_t>(word.number)];
      const std::string_view piece = token_piece(spelt).text;
      word.text = one_line(piece.empty() ? std::string_view(spelt) : piece);
      word.special = is_special_token(spelt);
      word.padding = is_padding_token(spelt);
    }
    if (grid.segment(token, names.batch) == Segment::padding) word.special = word.padding = true;
    words.push_back(std::move(word));
  }
  return words;
}

WordList list_words(std::span<const PromptWord> words, std::span<const double> masses,
                    std::span<const double> usual, std::span<const uint8_t> masked,
                    const WordsLook& look) {
  WordList list;
  for (size_t i = 0; i < words.size(); ++i) {
    const PromptWord& word = words[i];
    if (word.special && !look.special) {
      ++list.excluded;
      continue;
    }
    WordRow row{word, at_or_nan(masses, i), at_or_nan(usual, i),
                i < masked.size() && masked[i] != 0,
                std::binary_search(look.chosen.begin(), look.chosen.end(), word.number)};
    (word.special ? list.special_mass : list.words_mass) += or_zero(row.mass);
    if (row.chosen) list.chosen_mass += or_zero(row.mass);
    if (!look.filter.empty() && !holds_word(word.text, look.filter)) {
      ++list.filtered;
      continue;
    }
    list.largest = std::max({list.largest, or_zero(row.mass), or_zero(row.usual)});
    (word.special ? list.special : list.words).push_back(std::move(row));
  }
  if (!look.by_mass) return list;
  for (auto* rows : {&list.words, &list.special}) {
    std::stable_sort(rows->begin(), rows->end(), [](const WordRow& a, const WordRow& b) {
      return or_zero(a.mass) > or_zero(b.mass);
    });
  }
  return list;
}

std::optional<std::vector<IndexRange>> number_lists(std::string_view text) {
  std::vector<IndexRange> lists;
  while (true) {
    const size_t comma = text.find(',');
    const auto numbers = numbers_of(text.substr(0, comma));
    if (!numbers) return std::nullopt;
    lists.push_back(*numbers);
    if (comma == std::string_view::npos) return lists;
    text.remove_prefix(comma + 1);
  }
}

std::vector<int64_t> chosen_words(const TokenNames& names, const std::string& text) {
  const IndexRange all = names.grid->text_range();
  if (all.empty()) {
    throw usage_error(
        fmt::format("word {}: {} has no text tokens there", one_line(text), names.where));
  }
  std::vector<int64_t> chosen;
  if (const auto lists = number_lists(text)) {
    for (const IndexRange& numbers : *lists) {
      if (numbers.end > all.size()) {
        throw usage_error(fmt::format("word {}: outside the text of {} (valid 0 to {})",
                                      one_line(text), names.where, all.size() - 1));
      }
      for (int64_t n = numbers.begin; n < numbers.end; ++n) chosen.push_back(n);
    }
  } else {
    const IndexRange found = find_phrase(names, text);
    for (int64_t n = found.begin; n < found.end; ++n) chosen.push_back(n);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::string chosen_text(std::span<const PromptWord> words, std::span<const int64_t> chosen) {
  constexpr size_t kSpelt = 3;
  const auto spelt = [&](int64_t number) -> std::string {
    const auto at = static_cast<size_t>(number);
    if (at >= words.size() || words[at].text.empty()) return fmt::format("text {}", number);
    return words[at].text;
  };
  std::string text;
  size_t shown = 0, at = 0;
  while (at < chosen.size() && shown < kSpelt) {
    // Words that follow each other are a phrase.
    std::string phrase = spelt(chosen[at]);
    size_t next = at + 1;
    while (next < chosen.size() && chosen[next] == chosen[next - 1] + 1 && next - at < 2 * kSpelt) {
      phrase += " " + spelt(chosen[next++]);
    }
    text += (text.empty() ? "\u00ab" : " + \u00ab") + phrase + "\u00bb";
    ++shown;
    at = next;
  }
  if (at < chosen.size()) text += fmt::format(" + {} more", chosen.size() - at);
  return text;
}

}  // namespace attnscope
