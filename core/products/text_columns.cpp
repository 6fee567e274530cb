#include "core/products/text_columns.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kChunkRows = 256;

}  // namespace

TextColumns::TextColumns(std::span<const HeadTask> tasks,
                         std::span<const std::vector<int64_t>> chosen, bool within_text,
                         MemoryBudget& budget)
    : chosen_(chosen), within_text_(within_text) {
  int64_t bytes = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    most_keys_ = std::max(most_keys_, tasks[i].keys.size());
    const auto columns = checked_mul(tasks[i].num_rows() * static_cast<int64_t>(sizeof(float)),
                                     static_cast<int64_t>(chosen[i].size()));
    const auto sum = columns ? checked_add(bytes, *columns) : std::nullopt;
    if (!sum) throw Error(ErrorCode::resource, "the columns of the text are too large to be held");
    bytes = *sum;
  }
  reservation_ = budget.reserve(bytes, "the columns of the text");
}

TileRequest TextColumns::request() const {
  TileRequest request;
  request.chunk_rows = kChunkRows;
  // One chunk a row: a row's mass is known when its tile comes.
  request.chunk_cols = most_keys_;
  return request;
}

void TextColumns::begin(std::span<const HeadTask> tasks, int) {
  columns_.resize(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    columns_[i].assign(chosen_[i].size(),
                       std::vector<float>(static_cast<size_t>(tasks[i].num_rows()), 0.0f));
  }
}

void TextColumns::consume(const Tile& tile) {
  const auto task = static_cast<size_t>(tile.task_index);
  const auto* chunk = reinterpret_cast<const float*>(tile.chunks.front());
  if (chunk == nullptr) return;
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const float* row = chunk + r * most_keys_;
    double mass = 1;
    if (within_text_) {
      mass = 0;
      for (int64_t k = 0; k < tile.cols.size(); ++k) mass += static_cast<double>(row[k]);
      if (mass <= 0) continue;
    }
    for (size_t n = 0; n < chosen_[task].size(); ++n) {
      columns_[task][n][static_cast<size_t>(tile.rows.begin + r)] =
          static_cast<float>(static_cast<double>(row[chosen_[task][n]]) / mass);
    }
  }
}

}  // namespace attnscope
