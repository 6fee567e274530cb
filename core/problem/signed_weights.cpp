#include "core/problem/signed_weights.h"

#include <string>

#include "core/base/error.h"

namespace attnscope {

void require_one_sign(const AttentionProblem& problem, std::string_view what) {
  if (!is_signed(problem.score())) return;
  throw usage_error(
      problem.name() + ": score " + score_name(problem.score()) +
      " has weights of either sign, whose rows do not add up to 1: " + std::string(what) +
      " is not defined for them (view, export --product logits and export --product "
      "output are; --slots, --layers and --kind choose other calls)");
}

}  // namespace attnscope
