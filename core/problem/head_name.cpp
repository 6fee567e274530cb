#include "core/problem/head_name.h"

namespace attnscope {

HeadName head_name(const CallId& call, int64_t batch, int64_t head) {
  return {call.step, call.layer, branch_of(call, batch), std::string(kind_name(call.kind)), batch,
          head,      call.place};
}

std::string head_words(const HeadName& name) {
  return call_words(
      name.step, name.layer, name.branch,
      name.kind + " batch " + std::to_string(name.batch) + " head " + std::to_string(name.head),
      name.place);
}

}  // namespace attnscope
