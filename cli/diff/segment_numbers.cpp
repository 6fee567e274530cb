#include "cli/diff/segment_numbers.h"

#include <limits>
#include <numeric>

namespace attnscope {
namespace {

double sum_of(std::span<const float> row) { return std::accumulate(row.begin(), row.end(), 0.0); }

/// A row without weight stays as it is.
void divide_by(double sum, std::span<float> row) {
  if (sum == 0) return;
  for (float& weight : row) weight = static_cast<float>(weight / sum);
}

}  // namespace

std::vector<IndexRange> SegmentNumbers::runs(int64_t rows, int64_t panel_rows) const {
  return equal_runs(rows, panel_rows);
}

int64_t SegmentNumbers::bytes(int64_t rows, int64_t) const {
  // And what take() gives of a part of the rows.
  return rows * (std::ssize(key_parts_) + 1) * static_cast<int64_t>(sizeof(Cell));
}

void SegmentNumbers::begin(std::span<const IndexRange> runs, int64_t) {
  const int64_t rows = runs.empty() ? 0 : runs.back().end;
  cells_.assign(static_cast<size_t>(rows) * key_parts_.size(), {});
}

void SegmentNumbers::add(int64_t, int64_t row, const RowPair& pair) {
  Cell* cell = cells_.data() + static_cast<size_t>(row) * key_parts_.size();
  for (const SequencePart& part : key_parts_) {
    const auto first = static_cast<size_t>(part.tokens.begin);
    const auto size = static_cast<size_t>(part.tokens.size());
    const std::span a = pair.a.subspan(first, size), b = pair.b.subspan(first, size);
    cell->mass_a = sum_of(a);
    cell->mass_b = sum_of(b);
    if (distributions_) {
      divide_by(cell->mass_a, a);
      divide_by(cell->mass_b, b);
    }
    cell->row = compare_rows(a, b, distributions_);
    // An LSE is over all keys.
    cell->row.lse = std::numeric_limits<double>::quiet_NaN();
    ++cell;
  }
}

SegmentNumbers::Found SegmentNumbers::take(size_t query_part, size_t key_part) const {
  Found found;
  const IndexRange rows = query_parts_[query_part].tokens;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const Cell& cell = cells_[static_cast<size_t>(row) * key_parts_.size() + key_part];
    found.rows.push_back(cell.row);
    found.mass_a += cell.mass_a;
    found.mass_b += cell.mass_b;
  }
  found.mass_a /= static_cast<double>(rows.size());
  found.mass_b /= static_cast<double>(rows.size());
  return found;
}

}  // namespace attnscope
