#pragma once

#include <cstdint>

#include "core/base/aligned_vector.h"
#include "core/problem/attention_problem.h"

namespace attnscope {

/// Channels of a panel of V: see ValuePanels.
inline constexpr int64_t kValueChannels = 32;

/// V of one head in float32, widened exactly: panels of kValueChannels channels, each [keys,
/// kValueChannels], one after the other. Rows of a panel are cache-line aligned; channels from
/// `width` on are 0. Borrowed.
struct ValuePanels {
  const float* data = nullptr;
  int64_t keys = 0;
  int64_t width = 0;

  int64_t panels() const { return (width + kValueChannels - 1) / kValueChannels; }
  const float* row(int64_t panel, int64_t key) const {
    return data + (panel * keys + key) * kValueChannels;
  }
  float at(int64_t key, int64_t channel) const {
    return row(channel / kValueChannels, key)[channel % kValueChannels];
  }
};

/// Owns the V that goes with a query head, read once. Immutable from then on; thread-safe.
class BoundValues {
 public:
  /// The problem must have V. Throws what reading it throws.
  BoundValues(const AttentionProblem& problem, int64_t batch, int64_t head);

  ValuePanels panels() const { return {data_.data(), keys_, width_}; }

  /// Bytes that one head's V takes, and more that reading it needs. Overflow is INT64_MAX.
  static int64_t bytes(const AttentionProblem& problem);
  static int64_t transient_bytes(const AttentionProblem& problem);

 private:
  int64_t keys_, width_;
  AlignedVector<float> data_;
};

}  // namespace attnscope
