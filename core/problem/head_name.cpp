#include "core/problem/head_name.h"

namespace attnscope {

HeadName head_name(const CallId& call, int64_t batch, int64_t head) {
  return {call.step, call.layer, branch_of(call, batch), std::string(kind_name(call.kind)), batch,
          head,      call.place};
}

}  // namespace attnscope
