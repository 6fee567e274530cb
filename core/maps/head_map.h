#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/index_range.h"

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

/// Some rows and keys of a head's map, computed from Q and K or read from an export. Thread-safe.
class HeadMap {
 public:
  virtual ~HeadMap() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t keys() const = 0;
  /// Rows that are best brought at once.
  virtual int64_t panel_rows() const = 0;
  /// Floating point operations of all rows.
  virtual double flops() const = 0;
  /// Bytes that the map itself keeps, and more while prepare() runs.
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

}  // namespace attnscope
