#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/base/memory_budget.h"
#include "core/stream/stream_control.h"

namespace attnscope {

/// Some rows of a map at a time. Not thread-safe.
class MapRows {
 public:
  virtual ~MapRows() = default;
  /// Brings the rows at these positions, as many at once as its maker was told.
  virtual void read(IndexRange rows, std::span<std::byte> workspace) = 0;
  /// The entries of the i-th of them, until the next read(): −inf of masked logits, NaN of what is
  /// not there.
  virtual std::span<float> row(int64_t i) = 0;
  /// Its LSE over all keys; not finite where there is none.
  virtual double lse(int64_t i) const = 0;
};

/// One of two maps that are compared: the rows and keys of it that are. Thread-safe.
class MapSide {
 public:
  virtual ~MapSide() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t keys() const = 0;
  /// Rows that are best brought at once.
  virtual int64_t panel_rows() const = 0;
  /// Floating point operations of all rows.
  virtual double flops() const = 0;
  /// Bytes that the side itself keeps, and more while prepare() runs.
  virtual int64_t resident_bytes() const = 0;
  virtual int64_t transient_bytes() const { return 0; }
  /// Bytes of a reader of so many rows, and of the workspace of its reads, which may be another
  /// reader's as well.
  virtual int64_t reader_bytes(int64_t rows) const = 0;
  virtual int64_t workspace_bytes(int64_t rows) const = 0;
  /// Before the first reader; not thread-safe.
  virtual void prepare() {}
  virtual std::unique_ptr<MapRows> reader(int64_t rows) const = 0;
};

/// One row of both maps.
struct RowPair {
  std::span<float> a, b;  ///< of one length; may be written to
  double lse_a = 0, lse_b = 0;
};

/// What is made of the rows of two maps.
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
DifferencePlan plan_pair(const MapSide& a, const MapSide& b, const PairSink& sink,
                         const MemoryRoom& room, int max_workers);

/// Prepares the sides and takes all rows of both, which have the same numbers of rows and keys, to
/// the sink. False: it was stopped, and the sink is not to be used. What comes out depends neither
/// on the plan nor on who computes what. Reserves plan.bytes. Throws what the sides throw.
bool stream_pair(MapSide& a, MapSide& b, PairSink& sink, const DifferencePlan& plan,
                 MemoryBudget& budget, const StreamControl& control = {});

/// Runs of `size` rows.
std::vector<IndexRange> equal_runs(int64_t rows, int64_t size);

}  // namespace attnscope
