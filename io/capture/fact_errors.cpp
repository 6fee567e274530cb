#include "io/capture/fact_errors.h"

#include <charconv>

namespace attnscope {

Error bad_fact(const CallFacts& facts, const std::string& fact, const std::string& what,
               const std::string& option) {
  const CallFacts::Fact* found = facts.find(fact);
  if (found == nullptr || !found->source.empty()) return file_error(facts.name(), fact, what);
  return usage_error((option.empty() ? "--" + fact : option) + ": " + what);
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace attnscope
