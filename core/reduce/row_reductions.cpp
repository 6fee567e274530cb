#include "core/reduce/row_reductions.h"

#include <algorithm>

namespace attnscope {

double top_keys(std::span<const float> row, int64_t first_key, std::span<KeyWeight> out) {
  const auto before = [](const KeyWeight& a, const KeyWeight& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.key < b.key;
  };
  const size_t wanted = std::min(out.size(), row.size());
  const std::span<KeyWeight> heap = out.first(wanted);
  std::fill(out.begin() + static_cast<int64_t>(wanted), out.end(), KeyWeight());
  if (wanted == 0) return 0;
  for (size_t j = 0; j < wanted; ++j) {
    heap[j] = {row[j], static_cast<int32_t>(first_key + static_cast<int64_t>(j))};
  }
  // The worst of those kept stands at the front.
  std::make_heap(heap.begin(), heap.end(), before);
  for (size_t j = wanted; j < row.size(); ++j) {
    // A later key loses against an equal weight.
    if (!(row[j] > heap.front().weight)) continue;
    std::pop_heap(heap.begin(), heap.end(), before);
    heap.back() = {row[j], static_cast<int32_t>(first_key + static_cast<int64_t>(j))};
    std::push_heap(heap.begin(), heap.end(), before);
  }
  std::sort_heap(heap.begin(), heap.end(), before);
  double sum = 0;
  for (const KeyWeight& kept : heap) sum += double{kept.weight};
  return sum;
}

double keys_above(std::span<const float> row, int64_t first_key, double threshold,
                  std::vector<float>& weights, std::vector<int32_t>& keys) {
  double sum = 0;
  for (size_t j = 0; j < row.size(); ++j) {
    if (!(double{row[j]} >= threshold)) continue;
    weights.push_back(row[j]);
    keys.push_back(static_cast<int32_t>(first_key + static_cast<int64_t>(j)));
    sum += double{row[j]};
  }
  return sum;
}

}  // namespace attnscope
