#include "core/patterns/block_runs.h"

#include <array>

namespace attnscope {
namespace {

constexpr size_t kLanes = 16;

}  // namespace

std::vector<TokenRun> block_runs(const TokenBlocks& blocks, int64_t most) {
  std::vector<TokenRun> runs;
  for (int64_t token = 0; token < static_cast<int64_t>(blocks.of_token.size()); ++token) {
    const int64_t block = blocks.of_token[static_cast<size_t>(token)];
    if (runs.empty() || runs.back().block != block || token % most == 0) {
      runs.push_back({{token, token}, block});
    }
    runs.back().tokens.end = token + 1;
  }
  return runs;
}

double weight_sum(const float* weights, int64_t count) {
  std::array<float, kLanes> lanes{};
  int64_t j = 0;
  for (; j + int64_t{kLanes} <= count; j += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += weights[j + static_cast<int64_t>(l)];
  }
  for (size_t l = 0; j < count; ++j, ++l) lanes[l] += weights[j];
  double sum = 0;
  for (const float lane : lanes) sum += double{lane};
  return sum;
}

}  // namespace attnscope
