#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/call_file.h"

namespace attnscope::test {

/// One attention call of a model, computed in plain double loops, and the record of it: right, or
/// after a test has spoilt it. Batch of 2 (uncond, cond), 4 heads (2 of K and V), 4 text tokens and
/// then a grid of 2x3x4; every array is [batch, heads, tokens, d].
struct RecordedCall {
  static constexpr int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kWidth = 64, kText = 4;
  static constexpr std::array<int64_t, 3> kGrid{2, 3, 4};
  static constexpr int64_t kTokens = kText + 24;
  using Bias = std::function<double(int64_t query, int64_t key)>;
  using RowSinks = std::function<double(int64_t head, int64_t query)>;

  std::vector<float> q, k, v, out;  ///< out: of every row
  double scale = 0.125;
  double cap = 0;              ///< of the model's logits; 0: none
  std::vector<double> sinks;   ///< [heads]; empty: none
  RowSinks row_sinks;          ///< one a row instead
  std::vector<double> scales;  ///< [heads], of the model alone; empty: `scale`
  int64_t layer = 0;
  std::string mask_fact = "none", mask;  ///< `mask`: bytes of a bool tensor [tokens, tokens]
  std::string q_state = "qk_norm";
  std::vector<double> sums, sums_of_keys;  ///< the rows' denominators
  bool outputs = true;                     ///< whether output rows were recorded
  std::string mask_valid;                  ///< bytes of a bool tensor [tokens]

  explicit RecordedCall(uint64_t seed);
  /// Sets `out` to what the model makes of the arrays as they are now.
  void attend(const Bias& bias = {});
  /// Of every row, [batch, heads, tokens], as attend() had it last; with the sinks or without.
  std::vector<float> lse(bool with_sinks) const;
  /// Applies `change(token, row)` to every row of q and of k.
  void change_rows(const std::function<void(int64_t token, float* row)>& change);
  float* row(std::vector<float>& tensor, int64_t batch, int64_t head, int64_t token) const;
  /// With output rows 0, 3, 6 … of the sequence.
  CallFile file() const;
};

}  // namespace attnscope::test
