#include "cli/common/prompt_tokens.h"

#include <fmt/core.h>

#include "core/products/text_token.h"

namespace attnscope {
std::vector<int64_t> chosen_text_tokens(const std::vector<std::string>& asked,
                                        const CallEntry& call, int64_t batch) {
  const TokenGrid& keys = call.problem->key_tokens();
  std::vector<int64_t> chosen;
  for (const std::string& text : asked) {
    const IndexRange places = resolve_text_token(
        text, {call.tokens_of(batch), keys.text_range().size(), call.problem->name()});
    for (int64_t i = places.begin; i < places.end; ++i) chosen.push_back(i);
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
  const auto words = call.tokens_of(batch);
  const auto at = static_cast<size_t>(token);
  return at < words.size() ? fmt::format("text token {}  \"{}\"", token, words[at])
                           : fmt::format("text token {}", token);
}

}  // namespace attnscope
