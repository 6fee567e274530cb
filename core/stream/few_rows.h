#pragma once

#include <cstdint>
#include <memory>

#include "core/stream/tile_backend.h"

namespace attnscope {

/// A second interface of a TileBackend for few rows of a head, which do not pay for packing its K.
/// Heads that it binds give the bits of those of TileBackend::bind; each call reads K anew.
/// Thread-safe.
class FewRowBackend {
 public:
  virtual ~FewRowBackend() = default;

  /// Query rows of a head at most that this is for, and of a call; 0: none of this problem's.
  virtual int64_t few_rows(const AttentionProblem& problem) const = 0;
  /// See TileBackend::bind_cost and TileBackend::bind; of heads whose calls have up to `rows` rows.
  virtual TileBackend::BindCost bind_cost_for_few(const AttentionProblem& problem,
                                                  int64_t rows) const = 0;
  virtual std::unique_ptr<BoundHead> bind_for_few(const AttentionProblem& problem, int64_t batch,
                                                  int64_t head) const = 0;
  /// True where those heads look at every key at the first call, and throw Error(value) with
  /// tensor, index and value at the first NaN or Inf.
  virtual bool refuses_bad_keys(const AttentionProblem& problem) const = 0;
};

/// The cost of bind_for_rows() for `rows` query rows.
TileBackend::BindCost bind_cost_for_rows(const TileBackend& backend,
                                         const AttentionProblem& problem, int64_t rows);

/// True where heads that bind_for_rows makes for so many rows refuse keys that are not finite
/// themselves, so that nobody has to look for them before.
bool refuses_bad_keys(const TileBackend& backend, const AttentionProblem& problem, int64_t rows);

/// Makes a head ready for `rows` query rows, by whichever way suits so many. The problem must
/// outlive the result.
std::unique_ptr<BoundHead> bind_for_rows(const TileBackend& backend,
                                         const AttentionProblem& problem, int64_t batch,
                                         int64_t head, int64_t rows);

}  // namespace attnscope
