#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/token_grid.h"

namespace attnscope {

/// The parts of a key sequence whose masses are told apart, as numbers: 0 is the text that counts,
/// 1 … frames() the latent frames (a single one where there is no grid), frames() + 1 padding. An
/// immutable value; thread-safe.
class KeySegments {
 public:
  struct Span {
    IndexRange keys;
    int64_t segment = 0;
  };

  KeySegments() = default;
  /// The parts of one batch item.
  KeySegments(const TokenGrid& keys, int64_t batch);

  /// Ascending, not empty, without gaps.
  const std::vector<Span>& spans() const { return spans_; }
  int64_t frames() const { return frames_; }
  int64_t padding() const { return frames_ + 1; }
  int64_t count() const { return frames_ + 2; }
  /// Keys of a segment.
  int64_t size_of(int64_t segment) const;

 private:
  std::vector<Span> spans_;
  int64_t frames_ = 0;
};

}  // namespace attnscope
