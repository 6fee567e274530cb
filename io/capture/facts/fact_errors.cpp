#include "io/capture/facts/fact_errors.h"

namespace attnscope {

Error bad_fact(const CallFacts& facts, const std::string& fact, const std::string& what,
               const std::string& option) {
  const CallFacts::Fact* found = facts.find(fact);
  if (found == nullptr || !found->source.empty()) return file_error(facts.name(), fact, what);
  if (found->origin == kToldOrigin) return usage_error(told_option(fact) + ": " + what);
  return usage_error((option.empty() ? "--" + fact : option) + ": " + what);
}

Error wrong_tensor(const TensorSource& tensor, ErrorCode code, const std::string& what) {
  return {code, one_line(tensor.name() + ": " + what), {tensor.name(), ""}};
}

}  // namespace attnscope
