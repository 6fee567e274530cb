#include "kernels/cpu/row_sums.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnscope {
namespace {

// A row's first sum must show an entry above 2⁻²¹ and no sum may exceed 2⁶⁴ (is_sound_sum): then
// the reference is between 64 below and 21 above the row's largest exponent, every weight from
// 2⁻¹⁰⁰ on stays a normal float32, and what is flushed to 0 lies below the last bit of the row's
// sum.
constexpr float kSmallestFirstSum = 0x1p-12f;

bool fits(const KeyBlockProduct& block, int64_t row, const RowSum& sum, float block_sum) {
  if (!is_sound_sum(block_sum)) return false;
  if (sum.anchored || block_sum >= kSmallestFirstSum) return true;
  return block_sum == 0 && block.excludes_row(row);
}

void move_reference(RowSum& row, float reference, float* kept, int64_t count) {
  if (row.anchored) {
    const int shift = static_cast<int>(row.reference - reference);
    row.total = std::ldexp(row.total, shift);
    // t − reference grows by the shift.
    row.moment = std::ldexp(row.moment, shift) + static_cast<double>(shift) * row.total;
    const float scale = std::ldexp(1.0f, shift);
    for (int64_t i = 0; i < count; ++i) kept[i] *= scale;
  }
  row.reference = reference;
}

/// Gives rows that do not fit a reference that does. Leaves the block's products in its output.
void move_references(const KeyBlockProduct& block, std::span<RowSum> sums,
                     const RowReferences& entries, const KeptEntries& kept) {
  float maxima[kMaxGroupRows];
  block.exponent_maxima(maxima);
  for (int64_t row = 0; row < block.rows(); ++row) {
    RowSum& sum = sums[static_cast<size_t>(row)];
    if (fits(block, row, sum, entries.sums[row])) continue;
    if (!(std::fabs(maxima[row]) <= kMaxExponent)) {
      sum.unresolved = true;
    } else if (!sum.anchored || maxima[row] > sum.reference) {
      // Never down from entries that count: it was a product far below that spoiled the sum.
      const bool is_kept = row < kept.rows;
      move_reference(sum, maxima[row], is_kept ? kept.data + row * kept.stride : nullptr,
                     is_kept ? kept.count : 0);
    }
  }
}

}  // namespace

int64_t add_softmax_block(const KeyBlockProduct& block, std::span<RowSum> sums,
                          const KeptEntries& kept, WantedEntries wanted) {
  RowReferences entries;
  entries.with_moments = wanted.moments;
  const auto take_references = [&] {
    for (int64_t row = 0; row < block.rows(); ++row) {
      entries.references[row] = sums[static_cast<size_t>(row)].reference;
    }
  };
  take_references();
  wanted.entries ? block.softmax(entries) : block.sum_softmax(entries);
  bool all_fit = true;
  for (int64_t row = 0; row < block.rows(); ++row) {
    all_fit = all_fit && fits(block, row, sums[static_cast<size_t>(row)], entries.sums[row]);
  }
  if (!all_fit) {
    move_references(block, sums, entries, kept);
    take_references();
    block.softmax_of_products(entries);
  }
  for (int64_t row = 0; row < block.rows(); ++row) {
    RowSum& sum = sums[static_cast<size_t>(row)];
    const float block_sum = entries.sums[row];
    if (!is_sound_sum(block_sum)) return row;
    sum.total += static_cast<double>(block_sum);
    if (wanted.moments) sum.moment += static_cast<double>(entries.moments[row]);
    sum.anchored = sum.anchored || block_sum > 0;
  }
  return -1;
}

int64_t add_softmax_run(const PackedHead& head, const RowGroup& group, IndexRange blocks,
                        std::span<RowSum> sums, bool with_moments) {
  RunSums rows;
  rows.with_moments = with_moments;
  for (size_t row = 0; row < sums.size(); ++row) {
    rows.references[row] = sums[row].reference;
    rows.least[row] = sums[row].anchored ? 0 : kSmallestFirstSum;
    rows.totals[row] = sums[row].total;
    rows.moments[row] = sums[row].moment;
  }
  const BlockRun run = make_run(head, group, blocks, rows.references);
  const int64_t added = head.products.sum_run(run, head.exponent_factor, rows);
  if (added == 0) return 0;
  for (size_t row = 0; row < sums.size(); ++row) {
    sums[row].total = rows.totals[row];
    sums[row].moment = rows.moments[row];
    sums[row].anchored = true;
  }
  return added;
}

int64_t add_linear_block(const KeyBlockProduct& block, std::span<RowSum> sums) {
  RowReferences entries;
  block.linear(entries);
  for (int64_t row = 0; row < block.rows(); ++row) {
    if (!std::isfinite(entries.sums[row])) return row;
    sums[static_cast<size_t>(row)].total += static_cast<double>(entries.sums[row]);
  }
  return -1;
}

bool is_unresolved(const RowSum& sum) { return sum.unresolved && sum.total == 0; }

RowNorm norm_of(const RowSum& sum) {
  RowNorm norm = RowNorm::from_value(sum.total);
  if (norm.sum != 0) norm.exponent += static_cast<int64_t>(sum.reference);
  return norm;
}

double entropy_of(const RowSum& sum) {
  // −Σ p·log₂(p) with p = entry / total and log₂(p) = t − reference − log₂(total).
  if (sum.total == 0) return 0;
  // Rounding may leave the entropy of a single key a little below 0.
  return std::max(0.0, std::numbers::ln2 * (std::log2(sum.total) - sum.moment / sum.total));
}

float weight_factor(const RowNorm& norm, float reference) {
  if (norm.sum == 0) return 0;
  const auto shift = static_cast<int64_t>(reference) - norm.exponent;
  return static_cast<float>(std::ldexp(1.0 / norm.sum, static_cast<int>(shift)));
}

}  // namespace attnscope
