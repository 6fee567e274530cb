#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "viewer/tiles/jobs/map_job.h"
#include "viewer/tiles/jobs/masked_entries.h"

namespace attnscope {

/// Some rows of one of two heads that are compared, computed or read: what a piece of work needs of
/// it, taken with the service's lock held.
class SideRows {
 public:
  /// Rows ascending; of a map that is read they follow each other. Makes room for the head's norms.
  SideRows(HeadCache& head, Quantity quantity, std::vector<int64_t> rows, const JobTools& tools);

  /// Without the lock: entries of `count` of the rows from number `first` on, [count, keys.size()].
  /// They are read into `buffer`, of that size; those that are computed are borrowed until the
  /// scratch is used again, and norms of rows that were not known are found on the way.
  const float* entries(WorkerScratch* scratch, size_t first, size_t count, IndexRange keys,
                       std::span<float> buffer);
  /// Rows that a call should take at most.
  size_t rows_per_call(WorkerScratch* scratch, int64_t keys) const;
  const std::vector<int64_t>& rows() const { return rows_; }
  const std::vector<RowNorm>& norms() const { return norms_; }
  /// Keeps the norms that were found.
  void keep_norms(HeadCache& head) const;

 private:
  HeadId id_;
  Quantity quantity_;
  std::shared_ptr<const TexelReader> reader_;  ///< null: they are computed
  std::shared_ptr<const BoundMap> bound_;
  std::vector<int64_t> rows_;
  std::vector<RowNorm> norms_;  ///< of the rows, where there are such
  bool known_ = false;
};

/// Some rows over a range of keys, taken of two heads, both of which are computed or both read.
/// Copies share the memory that reading takes.
class PairRows {
 public:
  PairRows(HeadCache& a, HeadCache& b, Quantity quantity, const std::vector<int64_t>& rows,
           IndexRange keys, const JobTools& tools);

  using Use = std::function<void(int64_t row, std::span<float> a, std::span<const float> b)>;
  /// Calls `use` for each of the rows in their order, with its entries: NaN where a file lacks
  /// them. `a` may be written into.
  void each(WorkerScratch* scratch, const Use& use);
  /// Of all the rows, once each() is through; none where there are no norms.
  const std::vector<RowNorm>& norms_of_a() const { return a_.norms(); }
  const std::vector<RowNorm>& norms_of_b() const { return b_.norms(); }
  void keep_norms(HeadCache& a, HeadCache& b) const {
    a_.keep_norms(a);
    b_.keep_norms(b);
  }

 private:
  SideRows a_, b_;
  IndexRange keys_;
  std::shared_ptr<const MemoryReservation> memory_;  ///< of what is read
};

/// Gives texels that the masks of both heads leave nothing of −inf; true where there are such.
bool mark_masked_in_both(MapTile& tile, const MapGeometry& geometry, IndexRange texel_rows,
                         const std::optional<MaskedEntries>& a,
                         const std::optional<MaskedEntries>& b);
/// The entries that the head's mask leaves out; nothing where the map is read: its mask is unknown.
std::optional<MaskedEntries> masked_of(const HeadCache& head);

}  // namespace attnscope
