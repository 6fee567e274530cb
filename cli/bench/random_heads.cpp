#include "cli/bench/random_heads.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/checked_math.h"
#include "core/tensor/memory_tensor.h"

namespace attnscope {
namespace {

/// A bf16 tensor [1, 1, tokens, d] of normally distributed values.
std::shared_ptr<const TensorSource> random_tensor(const std::string& name, int64_t tokens,
                                                  int64_t d, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(static_cast<size_t>(tokens * d) * sizeof(bf16));
  auto* values = reinterpret_cast<bf16*>(bytes.data());
  for (int64_t i = 0; i < tokens * d; ++i) values[i] = to_bf16(normal(generator));
  return std::make_shared<MemoryTensor>(name, DType::bf16, std::vector<int64_t>{1, 1, tokens, d},
                                        std::move(bytes));
}

TokenGrid frames_of(int64_t tokens) {
  int64_t frames = 32;
  while (tokens % frames != 0) --frames;
  return TokenGrid::video(tokens, {frames, 1, tokens / frames}, 0, TextPlace::none);
}

}  // namespace

std::shared_ptr<const AttentionProblem> random_problem(int64_t tokens, int64_t d,
                                                       const Mask& mask) {
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(random_tensor("q", tokens, d, 1), Layout::bhsd);
  parts.k = HeadTensor(random_tensor("k", tokens, d, 2), Layout::bhsd);
  parts.mask = mask;
  parts.query_tokens = parts.key_tokens = frames_of(tokens);
  parts.id.branches = {"all"};
  parts.name = fmt::format("S={} d={}", tokens, d);
  return std::make_shared<AttentionProblem>(AttentionProblem::make(std::move(parts)));
}

Mask random_block_mask(int64_t tokens, int percent) {
  BlockMask mask;
  mask.block_queries = mask.block_keys = 128;
  mask.query_blocks = mask.key_blocks = ceil_div(tokens, 128);
  std::mt19937 generator(3);
  mask.bits.resize(static_cast<size_t>(mask.query_blocks * mask.key_blocks));
  for (int64_t i = 0; i < mask.query_blocks; ++i) {
    // Kept blocks come in one run a row, as sparse kernels have them: whole chunks then fall away.
    const int64_t kept = std::max<int64_t>(1, mask.key_blocks * percent / 100);
    const auto start = static_cast<int64_t>(generator() % static_cast<uint32_t>(mask.key_blocks));
    for (int64_t n = 0; n < kept; ++n) {
      mask.bits[static_cast<size_t>(i * mask.key_blocks + (start + n) % mask.key_blocks)] = 1;
    }
  }
  return Mask::blocks(mask);
}

}  // namespace attnscope
