#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/problem/attention_problem.h"

namespace attnscope {

/// Which features of each key of a head are above 0, whose score is linear:relu: tells rows whose
/// features meet those of no key from rows whose products float32 lost. Reads K at the first
/// question and keeps a bit a feature. Borrows the problem; thread-safe.
class PositiveFeatures {
 public:
  PositiveFeatures(const AttentionProblem& problem, int64_t batch, int64_t head);

  /// True where a product of the query with a key that its mask leaves is above 0.
  bool meets_any(int64_t query) const;

 private:
  using Bits = std::vector<uint64_t>;
  /// Adds the bits of a token's features at `to`, words_ of them.
  void find(const HeadTensor& tensor, int64_t head, int64_t token, uint64_t* to) const;
  void find_keys() const;
  bool meets(const Bits& row, const uint64_t* key) const;

  const AttentionProblem& problem_;
  const int64_t batch_, head_, words_;
  mutable std::once_flag once_;
  mutable Bits keys_;  ///< [keys, words_]
  mutable Bits any_;   ///< of all keys together
};

}  // namespace attnscope
