#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/base/memory_budget.h"
#include "core/maps/head_map.h"
#include "core/stream/stream_control.h"

namespace attnscope {

/// One row of both maps.
struct RowPair {
  std::span<float> a, b;  ///< of one length; may be written to
  double lse_a = 0, lse_b = 0;
};

/// Takes the rows of two maps, row by row, and reduces them to a result.
class PairSink {
 public:
  virtual ~PairSink() = default;
  /// The rows in runs that follow each other: those of a run come in their order from one thread,
  /// runs in any order and from several threads at once. The readers bring `panel_rows` at once.
  virtual std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const = 0;
  /// Bytes that it takes for a number of rows and keys, and for each worker beside that.
  virtual int64_t bytes(int64_t rows, int64_t keys) const = 0;
  virtual int64_t worker_bytes(int64_t keys) const = 0;
  /// Takes its memory for these runs.
  virtual void begin(std::span<const IndexRange> runs, int64_t keys) = 0;
  virtual void add(int64_t run, int64_t row, const RowPair& pair) = 0;
};

/// How a pair is streamed.
struct DifferencePlan {
  int workers = 1;
  int64_t rows = 1;  ///< of both maps that a worker holds at once
  int64_t bytes = 0;
  double flops = 0;    ///< of the products
  double entries = 0;  ///< of both maps
};

/// As many workers and rows as the bytes allow, `max_workers` at most. Throws Error(resource)
/// naming the smallest budget that would do.
DifferencePlan plan_pair(const HeadMap& a, const HeadMap& b, const PairSink& sink,
                         const MemoryRoom& room, int max_workers);

/// Prepares the sides and takes all rows of both, which have the same numbers of rows and keys, to
/// the sink. False: it was stopped, and the sink is not to be used. What comes out depends neither
/// on the plan nor on who computes what. Reserves plan.bytes. Throws what the sides throw.
bool stream_pair(HeadMap& a, HeadMap& b, PairSink& sink, const DifferencePlan& plan,
                 MemoryBudget& budget, const StreamControl& control = {});

/// Runs of `size` rows.
std::vector<IndexRange> equal_runs(int64_t rows, int64_t size);

}  // namespace attnscope
