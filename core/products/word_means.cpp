#include "core/products/word_means.h"

#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kWordRows = 256;

int64_t sums_bytes(size_t words, int64_t rows) {
  const auto bytes = checked_mul(rows, static_cast<int64_t>((words + 1) * sizeof(float)));
  if (!bytes) throw Error(ErrorCode::resource, "the words' rows are too many to be held");
  return *bytes;
}

}  // namespace

WordMeans::WordMeans(std::span<const IndexRange> words, int64_t rows, int64_t keys,
                     MemoryBudget& budget)
    : words_(words),
      rows_(rows),
      keys_(keys),
      reservation_(budget.reserve(sums_bytes(words.size(), rows), "the words over the video")),
      sums_(words.size() * static_cast<size_t>(rows)),
      live_(static_cast<size_t>(rows)) {}

TileRequest WordMeans::request() const {
  TileRequest request;
  request.chunk_rows = kWordRows;
  request.chunk_cols = keys_;
  return request;
}

void WordMeans::consume(const Tile& tile) {
  const auto* chunk = reinterpret_cast<const float*>(tile.chunks.front());
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const bool masked = !tile.norms.empty() && tile.norms[static_cast<size_t>(r)].sum == 0;
    if (masked) continue;
    const int64_t row = tile.rows.begin + r;
    ++live_[static_cast<size_t>(row)];
    if (chunk == nullptr) continue;
    for (size_t w = 0; w < words_.size(); ++w) {
      double weight = 0;
      for (int64_t k = words_[w].begin; k < words_[w].end; ++k) {
        weight += double{chunk[r * keys_ + k]};
      }
      sums_[w * static_cast<size_t>(rows_) + static_cast<size_t>(row)] +=
          static_cast<float>(weight);
    }
  }
}

std::vector<float> WordMeans::mean(size_t word) const {
  std::vector<float> means(static_cast<size_t>(rows_), std::numeric_limits<float>::quiet_NaN());
  for (size_t row = 0; row < means.size(); ++row) {
    if (live_[row] == 0) continue;
    means[row] = sums_[word * means.size() + row] / static_cast<float>(live_[row]);
  }
  return means;
}

}  // namespace attnscope
