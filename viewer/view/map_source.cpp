#include "viewer/view/map_source.h"

#include <numeric>

#include "io/capture/capture.h"

namespace attnscope {
namespace {

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

}  // namespace

std::vector<MapSource> shown_calls(const Capture& capture) {
  std::vector<MapSource> calls;
  for (const CallEntry& entry : capture.calls()) {
    const AttentionProblem& problem = *entry.problem;
    MapSource call;
    call.name = problem.name();
    call.step = entry.id.step;
    call.layer = entry.id.layer;
    call.kind = entry.id.kind;
    call.branches = entry.id.branches;
    call.batch = counted(problem.batch());
    call.heads = counted(problem.num_heads());
    call.queries = problem.query_tokens();
    call.keys = problem.key_tokens();
    call.tokens = entry.tokens;
    call.score = problem.score();
    call.rows = {0, problem.num_queries()};
    call.cols = {0, problem.num_keys()};
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace attnscope
