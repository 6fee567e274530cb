#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// The facts that name a head of a capture or of an export.
struct HeadName {
  int64_t step = 0, layer = 0;
  std::string branch, kind;
  int64_t batch = 0, head = 0;
  ModelPlace place = {};

  friend auto operator<=>(const HeadName&, const HeadName&) = default;
};

/// A head of a batch item of a call.
HeadName head_name(const CallId& call, int64_t batch, int64_t head);

/// "step 10 layer 3 cond joint batch 0 head 2", without what is not recorded.
std::string head_words(const HeadName& name);

}  // namespace attnscope
