#include "io/export/read/stored_map.h"

#include <algorithm>

namespace attnscope {
namespace {

class StoredMapRows final : public MapRows {
 public:
  StoredMapRows(const StoredMaps& maps, const StoredHead& head, std::span<const int64_t> queries,
                IndexRange keys, int64_t rows)
      : maps_(maps),
        head_(head),
        queries_(queries),
        keys_(keys),
        entries_(static_cast<size_t>(rows * keys.size())) {}

  void read(IndexRange rows, std::span<std::byte>) override {
    first_ = rows.begin;
    const auto count = static_cast<size_t>(rows.size());
    maps_.read_rows(head_, queries_.subspan(static_cast<size_t>(first_), count), keys_,
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

std::unique_ptr<MapRows> StoredMap::reader(int64_t rows) const {
  return std::make_unique<StoredMapRows>(maps_, head_, queries_, keys_, rows);
}

}  // namespace attnscope
