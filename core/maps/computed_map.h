#pragma once

#include <memory>
#include <vector>

#include "core/maps/head_map.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"

namespace attnscope {

/// The entries that are wanted of a map.
struct ChosenEntries {
  /// Of a row, ascending runs of the sequence's keys, not empty.
  std::vector<IndexRange> keys;
  Quantity quantity = Quantity::weights;
};

/// A map that is computed from q and k, which must be finite. Weights are over all keys, whichever
/// are wanted.
class ComputedMap final : public HeadMap {
 public:
  /// The rows of the task; its keys are not looked at. Borrows the problem, the task's row_list and
  /// the backend; also `other`, which shares its head where it is the same.
  ComputedMap(const HeadTask& task, ChosenEntries entries, const TileBackend& backend,
              const ComputedMap* other = nullptr);

  int64_t rows() const override { return task_.num_rows(); }
  int64_t keys() const override { return chosen_keys_; }
  int64_t panel_rows() const override;
  double flops() const override;
  int64_t resident_bytes() const override;
  int64_t transient_bytes() const override;
  int64_t reader_bytes(int64_t rows) const override;
  int64_t workspace_bytes(int64_t rows) const override;
  void prepare() override;
  std::unique_ptr<MapRows> reader(int64_t rows) const override;

 private:
  bool shares_head() const;
  const BoundHead& head() const;

  const HeadTask task_;
  const ChosenEntries entries_;
  const TileBackend& backend_;
  const ComputedMap* const other_;
  int64_t chosen_keys_ = 0;
  std::unique_ptr<BoundHead> bound_;
};

}  // namespace attnscope
