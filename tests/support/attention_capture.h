#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/call_file.h"

namespace attnscope::test {

/// A call of random float32 Q, K and V that can be written as a capture and computed in double.
class AttentionCapture {
 public:
  int64_t heads = 4, kv_heads = 2, tokens = 0, d = 8;
  std::vector<float> q, k, v;          ///< [heads or kv_heads, tokens, d]
  std::vector<unsigned char> allowed;  ///< [tokens, tokens], or empty: everything
  float masked_bias = 0;  ///< what the file's mask says instead of false; 0: it is a mask of bools

  AttentionCapture(uint64_t seed, int64_t the_tokens) : tokens(the_tokens) {
    std::mt19937_64 random(seed);
    const auto fill = [&](std::vector<float>& values, int64_t count, int64_t spread) {
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000) /
                         static_cast<float>(spread));
      }
    };
    fill(q, heads * tokens * d, 400);
    fill(k, kv_heads * tokens * d, 400);
    fill(v, kv_heads * tokens * d, 1000);
  }

  CallFile file() const {
    CallFile file;
    file.fact("q_state", "final")
        .tensor("q", "F32", {1, heads, tokens, d}, raw(q))
        .tensor("k", "F32", {1, kv_heads, tokens, d}, raw(k))
        .tensor("v", "F32", {1, kv_heads, tokens, d}, raw(v));
    if (allowed.empty()) return file;
    if (masked_bias == 0) return file.tensor("mask", "BOOL", {tokens, tokens}, raw(allowed));
    std::vector<float> bias;
    for (const unsigned char kept : allowed) bias.push_back(kept != 0 ? 0 : masked_bias);
    return file.tensor("mask", "F32", {tokens, tokens}, raw(bias));
  }

  int64_t kv_head(int64_t head) const { return head / (heads / kv_heads); }

  /// softmax(q·k/√d) of a head under `allowed`, [tokens, tokens]; fully masked rows are zeros.
  std::vector<double> weights(int64_t head) const {
    std::vector<double> map(static_cast<size_t>(tokens * tokens));
    for (int64_t i = 0; i < tokens; ++i) {
      double* row = map.data() + i * tokens;
      double total = 0;
      for (int64_t j = 0; j < tokens; ++j) {
        if (!allowed.empty() && allowed[static_cast<size_t>(i * tokens + j)] == 0) continue;
        double dot = 0;
        for (int64_t c = 0; c < d; ++c) {
          dot += double{q[static_cast<size_t>((head * tokens + i) * d + c)]} *
                 double{k[static_cast<size_t>((kv_head(head) * tokens + j) * d + c)]};
        }
        row[j] = std::exp(dot / std::sqrt(static_cast<double>(d)));
        total += row[j];
      }
      for (int64_t j = 0; j < tokens && total > 0; ++j) row[j] /= total;
    }
    return map;
  }

  double value(int64_t head, int64_t token, int64_t channel) const {
    return double{v[static_cast<size_t>((kv_head(head) * tokens + token) * d + channel)]};
  }
};

}  // namespace attnscope::test
