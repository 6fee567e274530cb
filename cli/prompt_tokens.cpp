#include "cli/prompt_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "core/error.h"
#include "core/selection.h"

namespace attnscope {
namespace {

/// The strings of a batch item's text; may be empty.
std::span<const std::string> words_of(const CallEntry& call, int64_t batch) {
  const auto& lists = call.tokens;
  if (lists.empty()) return {};
  return lists[lists.size() == 1 ? 0 : static_cast<size_t>(batch)];
}

/// A token without the marks that tokenizers put on pieces of words, in lower case.
std::string plain_word(std::string word) {
  for (const std::string_view mark : {"▁", "Ġ", "##", "</w>"}) {
    for (size_t at = word.find(mark); at != std::string::npos; at = word.find(mark)) {
      word.erase(at, mark.size());
    }
  }
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word;
}

/// The place of one --text-token within the text.
int64_t find_token(const std::string& text, const CallEntry& call, int64_t batch) {
  const int64_t count = call.problem->key_tokens().text_range().size();
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) {
    if (number >= 0 && number < count) return number;
    throw usage_error(fmt::format("--text-token {}: outside the text of {} (valid 0 to {})", text,
                                  call.problem->name(), count - 1));
  }
  std::vector<int64_t> found;
  const auto words = words_of(call, batch);
  for (size_t i = 0; i < words.size() && static_cast<int64_t>(i) < count; ++i) {
    if (plain_word(words[i]) == plain_word(text)) found.push_back(static_cast<int64_t>(i));
  }
  if (found.size() == 1) return found.front();
  if (!found.empty()) {
    throw usage_error(fmt::format("--text-token {}: several tokens of {} read so: {}", text,
                                  call.problem->name(), format_index_list(found)));
  }
  throw usage_error(fmt::format("--text-token {}: no token of {} reads so{}", text,
                                call.problem->name(),
                                words.empty() ? " (it has no token strings; give a number)" : ""));
}

}  // namespace

std::vector<int64_t> chosen_text_tokens(const std::vector<std::string>& asked,
                                        const CallEntry& call, int64_t batch) {
  const TokenGrid& keys = call.problem->key_tokens();
  std::vector<int64_t> chosen;
  for (const std::string& text : asked) {
    chosen.push_back(find_token(text, call, batch));
  }
  if (!asked.empty()) return chosen;
  for (int64_t i = 0; i < keys.text_range().size(); ++i) {
    if (keys.segment(keys.text_range().begin + i, batch) != Segment::padding) {
      chosen.push_back(i);
    }
  }
  return chosen;
}

std::string text_token_label(const CallEntry& call, int64_t batch, int64_t token) {
  const auto words = words_of(call, batch);
  const auto at = static_cast<size_t>(token);
  return at < words.size() ? fmt::format("text token {}  \"{}\"", token, words[at])
                           : fmt::format("text token {}", token);
}

}  // namespace attnscope
