#pragma once

#include <memory>
#include <vector>

#include "core/maps/head_map.h"
#include "io/export/read/stored_maps.h"

namespace attnscope {

/// An exported map, as it stands in the file: NaN where that lacks an entry, or a row its LSE.
/// Reading throws what StoredMaps does.
class StoredMap final : public HeadMap {
 public:
  /// The rows of some queries, ascending, of those that the file has, over a range of keys. Borrows
  /// the file and the head.
  StoredMap(const StoredMaps& maps, const StoredHead& head, std::vector<int64_t> queries,
            IndexRange keys)
      : maps_(maps), head_(head), queries_(std::move(queries)), keys_(keys) {}

  int64_t rows() const override { return std::ssize(queries_); }
  int64_t keys() const override { return keys_.size(); }
  /// A chunk that is unpacked serves all of its rows.
  int64_t panel_rows() const override { return head_.group->grid.chunk_rows; }
  double flops() const override { return 0; }
  int64_t resident_bytes() const override { return rows() * static_cast<int64_t>(sizeof(int64_t)); }
  int64_t reader_bytes(int64_t rows) const override {
    return maps_.reading_bytes(head_) + rows * keys() * static_cast<int64_t>(sizeof(float));
  }
  int64_t workspace_bytes(int64_t) const override { return 0; }
  std::unique_ptr<MapRows> reader(int64_t rows) const override;

 private:
  const StoredMaps& maps_;
  const StoredHead& head_;
  const std::vector<int64_t> queries_;
  const IndexRange keys_;
};

}  // namespace attnscope
