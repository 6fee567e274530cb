// Reductions over rows of entries that lie in the cache, compiled once for each instruction set.
#if defined(ATTNSCOPE_KERNELS_ROW_SWEEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNSCOPE_KERNELS_ROW_SWEEP_INL_H
#undef ATTNSCOPE_KERNELS_ROW_SWEEP_INL_H
#else
#define ATTNSCOPE_KERNELS_ROW_SWEEP_INL_H
#endif

#include <cstring>

#include "kernels/cpu/simd/lane_totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnscope::HWY_NAMESPACE {

/// Keys of a strip: four entries of each of the kSumLanes lanes.
inline constexpr int64_t kStripKeys = 4 * kSumLanes;
static_assert(kBlockKeys % kStripKeys == 0);

/// Adds four vectors of weights of a lane set as a fixed tree.
HWY_INLINE FloatVec tree_sum(const FloatVec (&w)[4]) {
  return hn::Add(hn::Add(w[0], w[1]), hn::Add(w[2], w[3]));
}

/// One strip of all rows, at key `key` of the part. kSums: its row sums go to the lanes; strips
/// that a cut divides add theirs in pieces.
template <bool kRows, bool kColumns, bool kSums>
HWY_INLINE void sweep_strip(const ReducedRows& sweep, int64_t key) {
  const FloatTag d;
  for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
    FloatVec sums[4], maxima[4];
    if constexpr (kColumns) {
      for (int64_t i = 0; i < 4; ++i) {
        sums[i] = hn::Load(d, sweep.column_sums + key + i * kSumLanes + lane);
        maxima[i] = hn::Load(d, sweep.column_maxima + key + i * kSumLanes + lane);
      }
    }
    const float* entries = sweep.entries + key + lane;
    for (int64_t row = 0; row < sweep.rows; ++row, entries += sweep.stride) {
      const FloatVec factor = hn::Set(d, sweep.factors[row]);
      FloatVec w[4];
      for (int64_t i = 0; i < 4; ++i) {
        w[i] = hn::Mul(hn::Load(d, entries + i * kSumLanes), factor);
        if constexpr (kColumns) {
          sums[i] = hn::Add(sums[i], w[i]);
          maxima[i] = hn::Max(maxima[i], w[i]);
        }
      }
      if constexpr (kRows) {
        float* at = sweep.lanes[row].maxima + lane;
        const FloatVec largest = hn::Max(hn::Max(w[0], w[1]), hn::Max(w[2], w[3]));
        hn::Store(hn::Max(hn::Load(d, at), largest), d, at);
      }
      if constexpr (kSums) {
        float* at = sweep.lanes[row].sums + lane;
        hn::Store(hn::Add(hn::Load(d, at), tree_sum(w)), d, at);
      }
    }
    if constexpr (kColumns) {
      for (int64_t i = 0; i < 4; ++i) {
        hn::Store(sums[i], d, sweep.column_sums + key + i * kSumLanes + lane);
        hn::Store(maxima[i], d, sweep.column_maxima + key + i * kSumLanes + lane);
      }
    }
  }
}

/// Adds the row sums of keys [begin, end) of the strip at `key` to the lanes.
HWY_INLINE void add_piece(const ReducedRows& sweep, int64_t key, IndexRange keys) {
  const FloatTag d;
  alignas(64) float piece[kStripKeys];
  const IndexRange part{keys.begin - key, keys.end - key};
  for (int64_t row = 0; row < sweep.rows; ++row) {
    const float* entries = sweep.entries + row * sweep.stride + key;
    std::memset(piece, 0, sizeof piece);
    std::memcpy(piece + part.begin, entries + part.begin,
                static_cast<size_t>(part.size()) * sizeof(float));
    const FloatVec factor = hn::Set(d, sweep.factors[row]);
    for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
      FloatVec w[4];
      for (int64_t i = 0; i < 4; ++i) {
        w[i] = hn::Mul(hn::Load(d, piece + i * kSumLanes + lane), factor);
      }
      float* at = sweep.lanes[row].sums + lane;
      hn::Store(hn::Add(hn::Load(d, at), tree_sum(w)), d, at);
    }
  }
}

/// Adds the lanes' sums to the segment's masses and clears them.
HWY_INLINE void close_run(const ReducedRows& sweep, int64_t segment) {
  for (int64_t row = 0; row < sweep.rows; ++row) {
    float* sums = sweep.lanes[row].sums;
    for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    sweep.masses[row * sweep.segments + segment] += static_cast<double>(sums[0]);
    std::memset(sums, 0, sizeof sweep.lanes[row].sums);
  }
}

template <bool kColumns>
HWY_INLINE void sweep_with_rows(const ReducedRows& sweep) {
  const SegmentRun* run = sweep.runs;
  const int64_t first = sweep.keys.begin;
  for (int64_t key = 0; key < sweep.keys.size(); key += kStripKeys) {
    const int64_t end = HWY_MIN(key + kStripKeys, sweep.keys.size());
    if (run->end - first > end || (run->end - first == end && end == key + kStripKeys)) {
      sweep_strip<true, kColumns, true>(sweep, key);
      if (run->end - first == end) close_run(sweep, (run++)->segment);
      continue;
    }
    sweep_strip<true, kColumns, false>(sweep, key);
    for (int64_t begin = key; begin < end;) {
      const int64_t piece_end = HWY_MIN(run->end - first, end);
      add_piece(sweep, key, {begin, piece_end});
      begin = piece_end;
      if (run->end - first == piece_end) close_run(sweep, (run++)->segment);
    }
  }
}

/// CpuKernels::reduce_rows.
void reduce_rows(const ReducedRows& sweep) {
  const bool columns = sweep.column_sums != nullptr;
  if (sweep.masses != nullptr) {
    columns ? sweep_with_rows<true>(sweep) : sweep_with_rows<false>(sweep);
    return;
  }
  if (!columns) return;
  for (int64_t key = 0; key < sweep.keys.size(); key += kStripKeys) {
    sweep_strip<false, true, false>(sweep, key);
  }
}

/// Adds entries [begin, end) of keys that belong to lanes [lane, lane + kLanes).
HWY_INLINE FloatVec add_line(const float* entries, IndexRange keys, int64_t lane, FloatVec sum) {
  const FloatTag d;
  for (int64_t i = keys.begin / kSumLanes * kSumLanes + lane; i < keys.end; i += kSumLanes) {
    const auto before = hn::FirstN(d, static_cast<size_t>(HWY_MAX(keys.begin - i, int64_t{0})));
    const auto there = hn::AndNot(before, hn::FirstN(d, static_cast<size_t>(keys.end - i)));
    sum = hn::Add(sum, hn::IfThenElseZero(there, hn::Load(d, entries + i)));
  }
  return sum;
}

/// CpuKernels::add_box.
void add_box(const float* entries, IndexRange part, const KeyBox& box, float* lanes) {
  const FloatTag d;
  for (int64_t lane = 0; lane < kSumLanes; lane += kLanes) {
    FloatVec sum = hn::Load(d, lanes + lane);
    for (int64_t t = box.frames.begin; t < box.frames.end; ++t) {
      const int64_t frame = box.first_key + t * box.frame_keys - part.begin;
      for (int64_t y = box.lines.begin; y < box.lines.end; ++y) {
        const int64_t line = frame + y * box.line_keys;
        const IndexRange keys{HWY_MAX(line + box.columns.begin, int64_t{0}),
                              HWY_MIN(line + box.columns.end, part.size())};
        sum = add_line(entries, keys, lane, sum);
      }
    }
    hn::Store(sum, d, lanes + lane);
  }
}

/// CpuKernels::add_scaled.
void add_scaled(const float* source, int64_t count, float factor, float* destination) {
  const FloatTag d;
  const FloatVec factors = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const FloatVec weight = hn::Mul(hn::LoadU(d, source + i), factors);
    hn::StoreU(hn::Add(hn::LoadU(d, destination + i), weight), d, destination + i);
  }
  for (; i < count; ++i) destination[i] += source[i] * factor;
}

/// One element of add_diagonals.
HWY_INLINE void add_diagonal_element(const ReducedRows& rows, int64_t at, float* destination) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    const int64_t key = at + row;
    if (key < 0 || key >= rows.keys.size()) continue;
    destination[at] += rows.entries[row * rows.stride + key] * rows.factors[row];
  }
}

/// CpuKernels::add_diagonals.
void add_diagonals(const ReducedRows& rows, float* destination) {
  const FloatTag d;
  int64_t at = 1 - rows.rows;
  for (; at < 0; ++at) add_diagonal_element(rows, at, destination);
  for (; at + kLanes + rows.rows <= rows.keys.size(); at += kLanes) {
    FloatVec sum = hn::LoadU(d, destination + at);
    const float* entries = rows.entries + at;
    for (int64_t row = 0; row < rows.rows; ++row, entries += rows.stride + 1) {
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, entries), hn::Set(d, rows.factors[row])));
    }
    hn::StoreU(sum, d, destination + at);
  }
  for (; at < rows.keys.size(); ++at) add_diagonal_element(rows, at, destination);
}

/// CpuKernels::find_weight.
int64_t find_weight(const float* entries, int64_t count, float factor, float weight) {
  const FloatTag d;
  const FloatVec factors = hn::Set(d, factor);
  const FloatVec wanted = hn::Set(d, weight);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto found = hn::Eq(hn::Mul(hn::LoadU(d, entries + i), factors), wanted);
    const intptr_t at = hn::FindFirstTrue(d, found);
    if (at >= 0) return i + at;
  }
  for (; i < count; ++i) {
    if (entries[i] * factor == weight) return i;
  }
  return -1;
}

/// CpuKernels::negative_plogp.
double negative_plogp(const float* entries, int64_t count, float factor) {
  const FloatTag d;
  const FloatVec factors = hn::Set(d, factor);
  const FloatVec least = hn::Set(d, 0x1p-120f);
  double total = 0;
  for (int64_t block = 0; block < count; block += kBlockKeys) {
    alignas(64) float lanes[kSumLanes] = {};
    const int64_t keys = HWY_MIN(kBlockKeys, count - block);
    alignas(64) float padded[kBlockKeys] = {};
    std::memcpy(padded, entries + block, static_cast<size_t>(keys) * sizeof(float));
    for (int64_t key = 0; key < kBlockKeys; key += kLanes) {
      const FloatVec weight = hn::Mul(hn::Load(d, padded + key), factors);
      const FloatVec term = hn::Mul(weight, log2_normal(hn::Max(weight, least)));
      float* at = lanes + key % kSumLanes;
      hn::Store(hn::Add(hn::Load(d, at), term), d, at);
    }
    float sum = 0;
    for (float lane : lanes) sum += lane;
    total -= static_cast<double>(sum);
  }
  return total;
}

}  // namespace attnscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
