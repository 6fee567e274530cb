#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/index_range.h"
#include "core/problem/score.h"
#include "core/products/pooled_map.h"
#include "io/capture/capture.h"
#include "python/native/engine.h"
#include "python/native/result_array.h"

namespace attnscope {

/// A call that Python has: of a capture, which it keeps open, or of arrays.
struct CallHandle {
  std::shared_ptr<const CallEntry> entry;
  std::shared_ptr<const Capture> capture;  ///< null: the call is of arrays
  std::string preset = {};                 ///< that the capture was opened with; empty: none

  const AttentionProblem& problem() const { return *entry->problem; }
};

/// Which heads of a call: pairs of batch item and head.
struct HeadPlace {
  int64_t batch = 0, head = 0;
};

/// Places of a sequence: a range, unless the list is not empty. The list ascends, none twice.
struct Places {
  IndexRange range;
  std::vector<int64_t> list;

  int64_t size() const { return list.empty() ? range.size() : static_cast<int64_t>(list.size()); }
};

/// Numbers that are looked through for NaN and Inf before a computation: all of q and k (and v), or
/// the chosen rows of q alone. Then a NaN or Inf of a key (a value) is found by the results that it
/// spoils, and one that no chosen row sees is not found. Scores that are no softmax, logits and
/// devices have all looked through.
enum class ValueCheck { all, rows };

// Parts of the maps of some heads of one call. Only what is asked for is computed. All throw
// Error(value) where q or k hold NaN or Inf (see ValueCheck), Error(resource) where the budget or
// the memory do not hold what is asked for, Error(interrupted) when they were stopped, Error(usage)
// where the call has no such thing.

/// [heads, rows, cols]: weights, each row normalised over all keys, or logits.
ResultArray<float> entries_of(const CallHandle& call, std::span<const HeadPlace> heads,
                              const Places& rows, const Places& cols, Quantity quantity,
                              ValueCheck check, EngineRun& run);
/// [rows] of one head: what known_entries_of() takes; empty where the score has no normalisers.
std::vector<RowNorm> row_norms_of(const CallHandle& call, const HeadPlace& head, const Places& rows,
                                  EngineRun& run);
/// [1, rows, cols] of one head, whose norms of these rows are known: the bits of entries_of()'s
/// weights, without another pass over all keys. q and k are not looked through again.
ResultArray<float> known_entries_of(const CallHandle& call, const HeadPlace& head,
                                    const Places& rows, const Places& cols,
                                    std::span<const RowNorm> norms, EngineRun& run);
/// [heads, rows]: ln of the rows' normalisers; −inf where a row is masked.
ResultArray<double> lse_of(const CallHandle& call, std::span<const HeadPlace> heads,
                           const Places& rows, ValueCheck check, EngineRun& run);
/// [heads, rows, channels of v].
ResultArray<float> outputs_of(const CallHandle& call, std::span<const HeadPlace> heads,
                              const Places& rows, ValueCheck check, EngineRun& run);
/// A map a head, in blocks of `block` × `block` weights.
std::vector<PooledMap> pooled_of(const CallHandle& call, std::span<const HeadPlace> heads,
                                 int64_t block, EngineRun& run);

/// All rows and keys of the heads.
std::vector<HeadTask> whole_heads(const CallHandle& call, std::span<const HeadPlace> heads);

}  // namespace attnscope
