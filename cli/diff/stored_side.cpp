#include "cli/diff/stored_side.h"

#include <algorithm>

#include "io/export/read/stored_rows.h"

namespace attnscope {
namespace {

class StoredRows final : public MapRows {
 public:
  StoredRows(const StoredMaps& maps, const StoredHead& head, std::span<const int64_t> queries,
             IndexRange keys, int64_t rows)
      : maps_(maps),
        head_(head),
        queries_(queries),
        keys_(keys),
        entries_(static_cast<size_t>(rows * keys.size())) {}

  void read(IndexRange rows, std::span<std::byte>) override {
    first_ = rows.begin;
    const auto count = static_cast<size_t>(rows.size());
    read_stored_rows(maps_, head_, queries_.subspan(static_cast<size_t>(first_), count), keys_,
                     std::span(entries_).first(count * static_cast<size_t>(keys_.size())));
  }
  std::span<float> row(int64_t i) override {
    return std::span(entries_).subspan(static_cast<size_t>(i * keys_.size()),
                                       static_cast<size_t>(keys_.size()));
  }
  double lse(int64_t i) const override {
    const std::vector<int64_t>& rows = head_.facts->queries;
    const int64_t query = queries_[static_cast<size_t>(first_ + i)];
    return maps_.lse(head_, std::lower_bound(rows.begin(), rows.end(), query) - rows.begin());
  }

 private:
  const StoredMaps& maps_;
  const StoredHead& head_;
  const std::span<const int64_t> queries_;
  const IndexRange keys_;
  int64_t first_ = 0;
  std::vector<float> entries_;
};

}  // namespace

StoredSide::StoredSide(const StoredMaps& maps, const StoredHead& head, std::vector<int64_t> queries,
                       IndexRange keys)
    : maps_(maps), head_(head), queries_(std::move(queries)), keys_(keys) {}

/// A chunk that is unpacked serves all of its rows.
int64_t StoredSide::panel_rows() const { return head_.group->grid.chunk_rows; }

int64_t StoredSide::resident_bytes() const {
  return std::ssize(queries_) * static_cast<int64_t>(sizeof(int64_t));
}

int64_t StoredSide::reader_bytes(int64_t rows) const {
  return stored_rows_bytes(maps_, head_) +
         rows * keys_.size() * static_cast<int64_t>(sizeof(float));
}

std::unique_ptr<MapRows> StoredSide::reader(int64_t rows) const {
  return std::make_unique<StoredRows>(maps_, head_, queries_, keys_, rows);
}

}  // namespace attnscope
