// The tile unit's kernels over several key blocks: the same bits as block by block, whichever way
// they take powers, and a run that ends where a block's sums do not fit.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/base/checked_math.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/common/tile_unit.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

constexpr int64_t kRows = 2 * kTileUnitRows;
constexpr int64_t kBlocks = 3;
constexpr SplitFactor kFactor{0x1.715476p-3f, 0x1.4ae0cp-29f};  // log₂(e)/8

/// Kernels of a tile unit, and what they multiply.
struct Tiles {
  CpuKernels::Products kernels;
  bool f16_numbers;

  uint32_t bits(float x) const {
    return f16_numbers ? uint32_t{to_f16(x).bits} : uint32_t{to_bf16(x).bits};
  }
  float number(uint32_t bits) const {
    const auto half = static_cast<uint16_t>(bits);
    return f16_numbers ? to_float(f16{half}) : to_float(bf16{half});
  }
};

/// Rows and panels of `pairs` pairs of channels, as packed, of one part.
struct RunOperands {
  const Tiles& tiles;
  AlignedVector<uint32_t> q, k;
  int64_t pairs;

  RunOperands(const Tiles& tiles_given, int64_t pairs_of_channels)
      : tiles(tiles_given), pairs(pairs_of_channels) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto number = [&] { return tiles.bits(normal(random)); };
    for (int64_t i = 0; i < kRows * pairs; ++i) q.push_back(number() << 16 | number());
    for (int64_t i = 0; i < kBlocks * kBlockKeys * pairs; ++i) {
      k.push_back(number() << 16 | number());
    }
  }

  BlockRun run(int64_t first, int64_t blocks, bool narrow) const {
    return {.q = reinterpret_cast<const float*>(q.data()),
            .k = reinterpret_cast<const float*>(k.data() + first * kBlockKeys * pairs),
            .steps = pairs,
            .parts = 1,
            .rows = kRows,
            .blocks = blocks,
            .narrow = narrow};
  }

  /// Multiplies a block's keys.
  void scale_block(int64_t block, float factor) {
    for (int64_t i = 0; i < kBlockKeys * pairs; ++i) {
      uint32_t& both = k[static_cast<size_t>(block * kBlockKeys * pairs + i)];
      const auto scaled = [&](uint32_t bits) { return tiles.bits(tiles.number(bits) * factor); };
      both = scaled(both >> 16) << 16 | scaled(both & 0xffffu);
    }
  }
};

float reference_of(int64_t row) { return static_cast<float>(row % 7 - 3); }

RunSums fresh_sums(bool moments) {
  RunSums sums{};
  sums.with_moments = moments;
  for (int64_t row = 0; row < kRows; ++row) {
    sums.references[row] = reference_of(row);
    sums.least[row] = 0x1p-12f;
  }
  return sums;
}

/// Entries and sums of one block by CpuKernels::Products::softmax.
struct OneBlock {
  AlignedVector<float> entries;
  RowReferences rows{};

  OneBlock(const CpuKernels::Products& kernels, const RunOperands& operands, int64_t block,
           bool moments)
      : entries(static_cast<size_t>(kRows * kBlockKeys)) {
    const BlockRun run = operands.run(block, 1, false);
    for (int64_t row = 0; row < kRows; ++row) rows.references[row] = reference_of(row);
    rows.with_moments = moments;
    kernels.softmax({.q = run.q,
                     .k = run.k,
                     .steps = run.steps,
                     .rows = kRows,
                     .panels = 0xff,
                     .out = entries.data(),
                     .out_stride = kBlockKeys},
                    kFactor, rows);
  }
};

std::vector<Tiles> all_tiles() {
  std::vector<Tiles> all;
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    for (const Tiles& tiles :
         {Tiles{kernels->tiles, false}, Tiles{kernels->tiles_emulated, false},
          Tiles{kernels->f16_tiles, true}, Tiles{kernels->f16_tiles_emulated, true}}) {
      if (tiles.kernels.sum_run != nullptr) all.push_back(tiles);
    }
  }
  return all;
}

/// Numbers of channel pairs: those that the native kernels know, and another.
constexpr int64_t kPairCounts[] = {32, 64, 48};

bool same_bits(const void* a, const void* b, size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

}  // namespace

TEST_CASE("a run's sums are those of its blocks one by one, narrow or not", "[numbers]") {
  const FlushDenormals flush;
  for (const Tiles& tiles : all_tiles()) {
    const CpuKernels::Products& kernels = tiles.kernels;
    for (const int64_t pairs : kPairCounts) {
      const RunOperands operands(tiles, pairs);
      for (const bool moments : {false, true}) {
        RunSums expected = fresh_sums(moments);
        for (int64_t block = 0; block < kBlocks; ++block) {
          const OneBlock one(kernels, operands, block, moments);
          for (int64_t row = 0; row < kRows; ++row) {
            expected.totals[row] += static_cast<double>(one.rows.sums[row]);
            if (moments) expected.moments[row] += static_cast<double>(one.rows.moments[row]);
          }
        }
        CHECK(expected.totals[0] > 1);
        for (const bool narrow : {false, true}) {
          RunSums got = fresh_sums(moments);
          REQUIRE(kernels.sum_run(operands.run(0, kBlocks, narrow), kFactor, got) == kBlocks);
          CHECK(same_bits(got.totals, expected.totals, kRows * sizeof(double)));
          CHECK(same_bits(got.moments, expected.moments, kRows * sizeof(double)));
          CHECK(got.least[kRows - 1] == 0);
        }
      }
    }
  }
}

TEST_CASE("a run's entries and weights are those of its blocks one by one, narrow or not",
          "[numbers]") {
  const FlushDenormals flush;
  constexpr int64_t kStride = kBlocks * kBlockKeys;
  for (const Tiles& tiles : all_tiles()) {
    const CpuKernels::Products& kernels = tiles.kernels;
    for (const int64_t pairs : kPairCounts) {
      const RunOperands operands(tiles, pairs);
      alignas(64) float references[kMaxGroupRows] = {};
      float factors[kMaxGroupRows] = {};
      for (int64_t row = 0; row < kRows; ++row) {
        references[row] = reference_of(row);
        factors[row] = 0.001f * static_cast<float>(row + 1);
      }
      AlignedVector<float> expected(static_cast<size_t>(kRows * kStride));
      for (int64_t block = 0; block < kBlocks; ++block) {
        const OneBlock one(kernels, operands, block, false);
        for (int64_t row = 0; row < kRows; ++row) {
          std::memcpy(expected.data() + row * kStride + block * kBlockKeys,
                      one.entries.data() + row * kBlockKeys, kBlockKeys * sizeof(float));
        }
      }
      for (const bool narrow : {false, true}) {
        const BlockRun run = operands.run(0, kBlocks, narrow);
        AlignedVector<float> entries(expected.size());
        kernels.entry_run(run, kFactor, references, entries.data(), kStride);
        CHECK(same_bits(entries.data(), expected.data(), entries.size() * sizeof(float)));
        // The last rows are not stored; panels go anywhere, here from the last to the first.
        constexpr int64_t kStored = kRows - 5;
        for (const Encoding encoding : {Encoding::f32, Encoding::f16}) {
          const int64_t bytes = encoding_bytes(encoding);
          constexpr int64_t kPanels = kBlocks * kBlockPanels;
          std::vector<std::byte> stored(static_cast<size_t>(kRows * kStride * bytes + 1));
          std::vector<std::byte*> panels;
          for (int64_t panel = 0; panel < kPanels; ++panel) {
            panels.push_back(stored.data() + 1 + (kPanels - 1 - panel) * kPanelKeys * bytes);
          }
          kernels.weight_run({.run = run,
                              .rows = kStored,
                              .references = references,
                              .factors = factors,
                              .encoding = encoding,
                              .out = panels.data(),
                              .out_stride = kStride},
                             kFactor);
          int64_t wrong = 0;
          for (int64_t row = 0; row < kRows; ++row) {
            for (int64_t key = 0; key < kStride; ++key) {
              const std::byte* const at = panels[static_cast<size_t>(key / kPanelKeys)] +
                                          (row * kStride + key % kPanelKeys) * bytes;
              const float weight =
                  row < kStored ? expected[static_cast<size_t>(row * kStride + key)] * factors[row]
                                : 0.0f;
              const f16 half = to_f16(weight);
              const bool same = encoding == Encoding::f32 ? same_bits(at, &weight, sizeof(weight))
                                                          : same_bits(at, &half, sizeof(half));
              wrong += same ? 0 : 1;
            }
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("a run's columns are those that its entries add up to, narrow or not", "[numbers]") {
  const FlushDenormals flush;
  constexpr int64_t kStride = kBlocks * kBlockKeys;
  // The last rows are not added; the unit that columns belong to changes within a step.
  constexpr int64_t kAdded = kRows - 5;
  constexpr int64_t kUnits[] = {0, 10, 48, kAdded};
  for (const Tiles& tiles : all_tiles()) {
    const CpuKernels::Products& kernels = tiles.kernels;
    for (const int64_t pairs : kPairCounts) {
      const RunOperands operands(tiles, pairs);
      alignas(64) float references[kMaxGroupRows] = {};
      float factors[kMaxGroupRows] = {};
      for (int64_t row = 0; row < kRows; ++row) {
        references[row] = reference_of(row);
        factors[row] = 0.001f * static_cast<float>(row + 1);
      }
      for (const bool narrow : {false, true}) {
        const BlockRun run = operands.run(0, kBlocks, narrow);
        AlignedVector<float> entries(static_cast<size_t>(kRows * kStride));
        kernels.entry_run(run, kFactor, references, entries.data(), kStride);
        // Both go on from what is there.
        AlignedVector<float> expected(6 * kStride, 0.125f);
        AlignedVector<float> got = expected;
        float* sums[kRows];
        float* maxima[kRows];
        for (int64_t unit = 0; unit < 3; ++unit) {
          for (int64_t row = kUnits[unit]; row < kUnits[unit + 1]; ++row) {
            sums[row] = got.data() + unit * kStride;
            maxima[row] = got.data() + (3 + unit) * kStride;
          }
          best_cpu_kernels().reduce_rows({.entries = entries.data() + kUnits[unit] * kStride,
                                          .stride = kStride,
                                          .factors = factors + kUnits[unit],
                                          .rows = kUnits[unit + 1] - kUnits[unit],
                                          .keys = {0, kStride},
                                          .column_sums = expected.data() + unit * kStride,
                                          .column_maxima = expected.data() + (3 + unit) * kStride});
        }
        kernels.column_run({.run = run,
                            .rows = kAdded,
                            .references = references,
                            .factors = factors,
                            .sums = sums,
                            .maxima = maxima},
                           kFactor);
        CHECK(expected[0] > 0.125f);
        CHECK(same_bits(got.data(), expected.data(), got.size() * sizeof(float)));
      }
    }
  }
}

TEST_CASE("a run ends before the block whose sums do not fit its rows' references") {
  const FlushDenormals flush;
  for (const Tiles& tiles : all_tiles()) {
    const CpuKernels::Products& kernels = tiles.kernels;
    RunOperands operands(tiles, 32);
    operands.scale_block(1, 64);
    RunSums got = fresh_sums(false);
    CHECK(kernels.sum_run(operands.run(0, kBlocks, false), kFactor, got) == 1);
    RunSums first = fresh_sums(false);
    CHECK(kernels.sum_run(operands.run(0, 1, false), kFactor, first) == 1);
    CHECK(same_bits(got.totals, first.totals, kRows * sizeof(double)));
    // A reference far above what the first block has: nothing is added, to no row.
    RunSums high = fresh_sums(false);
    high.references[kRows - 1] = 60;
    CHECK(kernels.sum_run(operands.run(0, 1, false), kFactor, high) == 0);
    CHECK(high.totals[0] == 0);
    CHECK(high.least[0] > 0);
    high.least[kRows - 1] = 0;
    CHECK(kernels.sum_run(operands.run(0, 1, false), kFactor, high) == 1);
  }
}

}  // namespace attnscope::test
