#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/problem/attention_problem.h"
#include "core/stream/tile_backend.h"

namespace attnscope {

/// The head whose rows have norms.
struct NormSource {
  const AttentionProblem* problem = nullptr;
  const TensorSource* mask = nullptr;  ///< the tensor of the problem's mask; null: it has none
  int64_t batch = 0;
  int64_t head = 0;
};

/// Keeps the row norms of heads from one run to the next, both of their parts. Not thread-safe.
class NormStore {
 public:
  virtual ~NormStore() = default;

  /// A name for everything that decides the norms of one head: its numbers, its mask, and
  /// `backend`, the name of what computes them. May read the head's q and k. Throws
  /// Error(interrupted) soon after a stop is requested.
  virtual std::string key(const NormSource& source, std::string_view backend,
                          std::stop_token stop) = 0;
  /// Fills `norms`, one a row, and returns true; or returns false and leaves them in any state:
  /// none are kept under that key.
  virtual bool load(const std::string& key, std::span<RowNorm> norms) const = 0;
  /// Returns what went wrong, one line, or nothing; never throws for want of a place. Throws
  /// Error(file) where what the norms were computed from has changed meanwhile.
  virtual std::optional<std::string> store(const std::string& key,
                                           std::span<const RowNorm> norms) = 0;
};

}  // namespace attnscope
