#include "viewer/tiles/map_call.h"

namespace attnscope {

std::vector<MapCall> map_calls(const Capture& capture) {
  std::vector<MapCall> calls;
  for (const CallEntry& call : capture.calls()) calls.push_back({call.problem, call.mask});
  return calls;
}

}  // namespace attnscope
