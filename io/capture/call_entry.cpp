#include "io/capture/call_entry.h"

namespace attnscope {

const std::string& branch_of(const CallId& id, int64_t item) {
  return id.branches[id.branches.size() == 1 ? 0 : static_cast<size_t>(item)];
}

}  // namespace attnscope
