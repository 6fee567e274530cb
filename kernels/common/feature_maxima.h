#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// The largest feature of each channel among all keys of a head whose score is linear:relu: tells
/// rows whose features meet those of no key from rows whose products float32 lost. Reads K at the
/// first question. Borrows the problem; thread-safe.
class FeatureMaxima {
 public:
  FeatureMaxima(const AttentionProblem& problem, int64_t batch, int64_t head)
      : problem_(problem), batch_(batch), head_(head) {}

  /// Whether a product of the query with a key that its mask leaves is above 0.
  bool meets_any(int64_t query) const;

 private:
  /// The bits of features, which are above 0 where features are, subnormal ones too.
  std::vector<int32_t> features(const HeadTensor& tensor, int64_t head, int64_t token) const;
  void find() const;

  const AttentionProblem& problem_;
  const int64_t batch_, head_;
  mutable std::once_flag once_;
  mutable std::vector<int32_t> largest_;
};

}  // namespace attnscope
