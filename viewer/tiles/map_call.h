#pragma once

#include <memory>
#include <vector>

#include "core/problem/attention_problem.h"
#include "io/capture/capture.h"

namespace attnscope {

/// One call whose maps can be looked at.
struct MapCall {
  std::shared_ptr<const AttentionProblem> problem;
  std::shared_ptr<const TensorSource> mask;  ///< of the problem, where it has a tensor mask
};

/// The calls of a capture, in its order.
std::vector<MapCall> map_calls(const Capture& capture);

}  // namespace attnscope
