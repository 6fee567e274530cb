#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "core/base/index_range.h"

namespace attnscope {

/// Pieces of K that threads take one after the other, and what comes of them. Thread-safe.
class PieceQueue {
 public:
  PieceQueue(int64_t keys, int64_t piece) : keys_(keys), piece_(piece) {}

  /// Empty when there are no more, or a piece failed.
  IndexRange next();
  /// Of failures that of the earliest piece is kept: those before it were taken.
  void fail(IndexRange piece, std::exception_ptr error);
  /// A thread is done; `largest` is the largest length among its keys.
  void done(float largest);
  /// After all threads have ended: the largest of all, or the failure.
  float finish() const;

 private:
  const int64_t keys_;
  const int64_t piece_;
  std::mutex mutex_;
  int64_t next_ = 0;
  int64_t failed_ = 0;
  float largest_ = 0;
  std::exception_ptr error_;
};

}  // namespace attnscope
