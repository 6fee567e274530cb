#pragma once

#include <memory>
#include <vector>

#include "core/products/differences/pair_stream.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

/// An exported map, as it stands in the file.
class StoredSide final : public MapSide {
 public:
  /// The rows of some queries, ascending, of those that the file has, over a range of keys. Borrows
  /// the file and the head.
  StoredSide(const StoredMaps& maps, const StoredHead& head, std::vector<int64_t> queries,
             IndexRange keys);

  int64_t rows() const override { return std::ssize(queries_); }
  int64_t keys() const override { return keys_.size(); }
  int64_t panel_rows() const override;
  double flops() const override { return 0; }
  int64_t resident_bytes() const override;
  int64_t reader_bytes(int64_t rows) const override;
  int64_t workspace_bytes(int64_t) const override { return 0; }
  std::unique_ptr<MapRows> reader(int64_t rows) const override;

 private:
  const StoredMaps& maps_;
  const StoredHead& head_;
  const std::vector<int64_t> queries_;
  const IndexRange keys_;
};

}  // namespace attnscope
