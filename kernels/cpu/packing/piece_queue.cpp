#include "kernels/cpu/packing/piece_queue.h"

#include <algorithm>
#include <utility>

namespace attnscope {

IndexRange PieceQueue::next() {
  const std::lock_guard lock(mutex_);
  if (error_) return {};
  const int64_t begin = next_;
  next_ = std::min(begin + piece_, keys_);
  return {begin, next_};
}

void PieceQueue::fail(IndexRange piece, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (error_ && failed_ < piece.begin) return;
  error_ = std::move(error);
  failed_ = piece.begin;
}

void PieceQueue::done(float largest) {
  const std::lock_guard lock(mutex_);
  largest_ = std::max(largest_, largest);
}

float PieceQueue::finish() const {
  if (error_) std::rethrow_exception(error_);
  return largest_;
}

}  // namespace attnscope
