#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "core/mask/mask.h"
#include "core/mask/masked_bias.h"
#include "core/patterns/build_mask.h"
#include "core/problem/attention_problem.h"
#include "tests/core/products/product_case.h"
#include "tests/support/helpers.h"

namespace attnscope::test {

inline constexpr std::array<int64_t, 3> kGrid{6, 8, 16};
inline constexpr int64_t kText = 40, kTokens = kText + 6 * 8 * 16, kWidth = 16;

/// Multiples of 1/256 that are alike in runs of 40 tokens, as neighbours in a video are.
inline std::vector<float> channels(uint32_t seed) {
  uint32_t state = seed;
  const auto next = [&](uint32_t most) {
    state = 1664525 * state + 1013904223;
    return static_cast<int>((state >> 8) % (2 * most + 1)) - static_cast<int>(most);
  };
  constexpr int64_t kRun = 40;
  std::vector<int> base;
  for (int64_t i = 0; i < (kTokens + kRun - 1) / kRun * kWidth; ++i) base.push_back(next(300));
  std::vector<float> values;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t c = 0; c < kWidth; ++c) {
      const int own = base[static_cast<size_t>(t / kRun * kWidth + c)] + next(100);
      values.push_back(static_cast<float>(own) / 256.0f);
    }
  }
  return values;
}

inline AttentionProblem::Parts parts_of_call() {
  AttentionProblem::Parts parts;
  const auto tensor = [](const char* name, uint32_t seed) {
    return HeadTensor(make_tensor(name, DType::f32, {1, 1, kTokens, kWidth}, channels(seed)),
                      Layout::bhsd);
  };
  parts.q = tensor("q", 1);
  parts.k = tensor("k", 2);
  parts.v = tensor("v", 3);
  parts.query_tokens = parts.key_tokens = TokenGrid::video(kTokens, kGrid, kText, TextPlace::start);
  parts.id.kind = CallKind::joint;
  parts.name = "test";
  return parts;
}

inline Mask built(const std::string& text, const AttentionProblem& problem) {
  const auto backend = std::move(two_backends().front());
  MemoryBudget budget(int64_t{64} << 20);
  return build_mask(parse_mask_pattern(text, "--mask"), problem, 0, 0, {*backend, budget});
}

/// The tokens that stand for the blocks: for each block one.
inline std::vector<int64_t> first_tokens(const std::string& pattern, size_t blocks) {
  std::vector<int64_t> tokens;
  const auto tiles = [&](std::array<int64_t, 3> tile) {
    for (int64_t t = 0; t < kGrid[0]; t += tile[0]) {
      for (int64_t y = 0; y < kGrid[1]; y += tile[1]) {
        for (int64_t x = 0; x < kGrid[2]; x += tile[2]) {
          tokens.push_back(kText + (t * kGrid[1] + y) * kGrid[2] + x);
        }
      }
    }
    tokens.push_back(0);
  };
  if (pattern.starts_with("vsa")) tiles({4, 4, 4});
  if (pattern.starts_with("nabla")) tiles({1, 8, 8});
  if (pattern.starts_with("draft")) tiles({1, 8, 16});
  if (pattern.starts_with("ssta")) tiles({2, 4, 4});
  const int64_t block = (kTokens + 63) / 64 == static_cast<int64_t>(blocks) ? 64 : 128;
  for (int64_t token = 0; tokens.size() < blocks; token += block) tokens.push_back(token);
  return tokens;
}

inline std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> rows(1);
  for (const char c : text) {
    if (c == ' ') {
      rows.emplace_back();
    } else {
      rows.back() += c;
    }
  }
  return rows;
}

inline bool keeps(const Mask& mask, int64_t query, int64_t key) {
  float bias = 0;
  mask.fill_bias(0, 0, {&query, 1}, {key, key + 1}, &bias, 1);
  return bias > kMasked;
}

}  // namespace attnscope::test
