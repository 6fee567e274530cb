#include "viewer/tiles/jobs/head_cache.h"

#include <algorithm>

namespace attnscope {

bool NormTable::known(IndexRange rows) const {
  return !known_.empty() && std::all_of(known_.begin() + rows.begin, known_.begin() + rows.end,
                                        [](uint8_t known) { return known != 0; });
}

bool NormTable::known(std::span<const int64_t> rows) const {
  return !known_.empty() && std::all_of(rows.begin(), rows.end(), [&](int64_t row) {
    return known_[static_cast<size_t>(row)] != 0;
  });
}

void NormTable::prepare(int64_t rows, const Reserve& reserve) {
  if (!known_.empty()) return;
  memory_ = reserve(bytes(rows), "the row sums of a head");
  norms_.resize(static_cast<size_t>(rows));
  known_.assign(static_cast<size_t>(rows), 0);
}

void NormTable::set(int64_t first, std::span<const RowNorm> norms) {
  for (size_t i = 0; i < norms.size() && !known_.empty(); ++i) {
    const size_t row = static_cast<size_t>(first) + i;
    norms_[row] = norms[i];
    if (known_[row] == 0) ++count_;
    known_[row] = 1;
  }
}

void NormTable::set(std::span<const int64_t> rows, std::span<const RowNorm> norms) {
  for (size_t i = 0; i < rows.size(); ++i) set(rows[i], norms.subspan(i, 1));
}

TilePtr HeadCache::exact_tile(const TileId& tile) const {
  const OfQuantity* const of = find({tile.quantity, tile.against});
  if (of == nullptr) return nullptr;
  const auto found = of->exact.find(tile);
  return found == of->exact.end() ? nullptr : found->second;
}

int64_t HeadCache::bytes() const {
  int64_t bytes = norms.reserved() + tracks_memory.bytes();
  const auto add = [&bytes](const OfQuantity& of) {
    bytes += of.exact_memory.bytes();
    if (of.sampled) bytes += of.sampled->reservation.bytes();
  };
  for (const OfQuantity& of : quantities) add(of);
  for (const auto& [numbers, of] : differences) add(of);
  for (const auto& [other, progress] : divergences) bytes += progress->reservation.bytes();
  return bytes;
}

bool HeadCache::drop(Quantity quantity) {
  OfQuantity& of = this->of(quantity);
  const bool any = of.exact_memory.bytes() > 0 || of.sampled != nullptr;
  of = {};
  return any;
}

bool HeadCache::drop_differences(const std::function<bool(const MapNumbers&)>& is_kept) {
  return std::erase_if(differences, [&](const auto& each) { return !is_kept(each.first); }) > 0;
}

bool HeadCache::drop_sketch() {
  const bool any = sketch != nullptr;
  sketch = nullptr;
  sketch_memory = {};
  return any;
}

void HeadCache::drop() {
  bound = nullptr;
  norms = {};
  for (OfQuantity& of : quantities) of = {};
  differences.clear();
  divergences.clear();
  tracks = nullptr;
  tracks_memory = {};
  asked_cache = false;
}

}  // namespace attnscope
