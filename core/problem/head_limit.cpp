#include "core/problem/head_limit.h"

namespace attnscope {

std::string too_many_heads(const HeadTensor& tensor) {
  if (tensor.batch() == 0 || tensor.heads() <= kMaxCallHeads / tensor.batch()) return "";
  return "has " + std::to_string(tensor.batch() * tensor.heads()) +
         " heads (batch items x heads, limit " + std::to_string(kMaxCallHeads) + ")";
}

}  // namespace attnscope
