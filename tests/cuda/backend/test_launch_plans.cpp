// Plans that the host makes before anything is launched: tiles of masks, splits of keys.
#include <cmath>
#include <limits>

#include "kernels/cuda/host/plans/mask_tiles.h"
#include "kernels/cuda/host/plans/split_plan.h"
#include "kernels/cuda/kernel/launch.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

/// The bias that tiles say an entry has.
double bias_of(const cuda::MaskTiles& mask, int64_t row, int64_t key) {
  using namespace cuda;
  if (mask.tiles.empty()) return 0;
  const int64_t columns = mask.end_tile - mask.first_tile;
  const uint32_t tile = mask.tiles[static_cast<size_t>(row / kTileRows * columns + key / kTileKeys -
                                                       mask.first_tile)];
  if (tile == kFullTile) return 0;
  if (tile == kEmptyTile) return -std::numeric_limits<double>::infinity();
  const int64_t line = static_cast<int64_t>(tile - kMixedTile) * kTileRows + row % kTileRows;
  const int64_t at = line * kTileKeys + key % kTileKeys;
  if (!mask.biases.empty()) return static_cast<double>(mask.biases[static_cast<size_t>(at)]);
  const uint32_t word = mask.bits[static_cast<size_t>(at / 32)];
  return (word >> (at % 32) & 1) != 0 ? 0 : -std::numeric_limits<double>::infinity();
}

__global__ void do_nothing(int) {}

}  // namespace

TEST_CASE("tiles of a mask say of every entry what the mask says") {
  const Shape shape{1, 2, 1, 300, 700, 4};
  for (const std::string_view name : kMaskNames) {
    const Oracle oracle({.shape = shape, .mask = name});
    const MaskCase expected = mask_case(name, shape);
    // All rows, and a list with gaps.
    std::vector<int64_t> all, some;
    for (int64_t i = 0; i < shape.queries; ++i) {
      all.push_back(i);
      if (i % 7 == 3 || i > 250) some.push_back(i);
    }
    for (const auto& rows : {all, some}) {
      for (const auto& [first, end] : {std::pair{0, 6}, std::pair{2, 5}}) {
        const cuda::MaskTiles mask =
            cuda::make_mask_tiles(oracle.problem(), 0, 1, rows, first, end);
        INFO(name << " " << rows.size() << " rows, tiles " << first << ":" << end);
        bool same = true;
        for (size_t i = 0; i < rows.size(); ++i) {
          for (int64_t key = first * 128; key < std::min<int64_t>(end * 128, shape.keys); ++key) {
            const double bias = expected.bias(0, 1, rows[i], key);
            const double got = bias_of(mask, static_cast<int64_t>(i), key);
            same = same && (got == bias || std::fabs(got - bias) <= 1e-6 * std::fabs(bias));
          }
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("tiles of a mask are told apart: only those that it cuts through carry bits") {
  const Shape shape{1, 1, 1, 1280, 1280, 4};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < shape.queries; ++i) rows.push_back(i);
  const auto tiles_of = [&](std::string_view name) {
    const Oracle oracle({.shape = shape, .mask = name});
    return cuda::make_mask_tiles(oracle.problem(), 0, 0, rows, 0, 10);
  };
  const cuda::MaskTiles causal = tiles_of("causal");
  CHECK(causal.tiles.size() == 100);
  CHECK(std::count_if(causal.tiles.begin(), causal.tiles.end(),
                      [](uint32_t tile) { return tile >= cuda::kMixedTile; }) == 10);
  CHECK(causal.bits.size() == 10 * 128 * 4);
  CHECK(std::count(causal.tiles.begin(), causal.tiles.end(), cuda::kEmptyTile) == 45);
  CHECK(causal.biases.empty());
  CHECK(tiles_of("none").tiles.empty());
}

TEST_CASE("keys are split so that the last multiprocessor is done first") {
  for (const int rows : {1, 3, 16, 70, 139}) {
    for (const int segments : {1, 2, 18, 117}) {
      for (const int multiprocessors : {1, 14, 132}) {
        const cuda::SplitPlan plan = cuda::plan_splits(rows, segments, multiprocessors, 2);
        INFO(rows << " blocks of rows, " << segments << " segments, " << multiprocessors);
        const auto blocks = [&](int length) { return rows * ((segments + length - 1) / length); };
        CHECK(plan.splits * plan.split_segments >= segments);
        CHECK((plan.splits - 1) * plan.split_segments < segments);
        CHECK(plan.blocks == blocks(plan.split_segments));
        const auto waves = [&](int length) {
          return std::ceil(blocks(length) / (2.0 * multiprocessors));
        };
        const double cost = waves(plan.split_segments) * (plan.split_segments + 0.25);
        for (int length = 1; length <= segments; ++length) {
          const double other = waves(length) * (length + 0.25);
          CHECK((length > plan.split_segments ? other > cost : other >= cost));
        }
      }
    }
  }
}

TEST_CASE("keys are split where rows leave a device idle, and where they fill it not at all") {
  // Two splits of 9 segments would leave most of a second wave empty.
  const cuda::SplitPlan whole_head = cuda::plan_splits(70, 18, 132, 1);
  CHECK(whole_head.split_segments == 2);
  CHECK(whole_head.blocks == 630);
  const cuda::SplitPlan few_rows = cuda::plan_splits(1, 117, 132, 1);
  CHECK(few_rows.split_segments == 1);
  CHECK(few_rows.blocks == 117);
  const cuda::SplitPlan full = cuda::plan_splits(264, 18, 132, 1);
  CHECK(full.splits == 1);
}

TEST_CASE("a thread's launch takes no shared memory away from another's that is wider") {
  cuda::emulation::reset();
  const auto allowed = [] {
    cudaFuncAttributes attributes;
    REQUIRE(cudaFuncGetAttributes(&attributes, do_nothing) == cudaSuccess);
    return attributes.maxDynamicSharedSizeBytes;
  };
  // Both have asked before either launches.
  CHECK(cuda::allow_shared(do_nothing, 112 << 10) == cudaSuccess);
  CHECK(cuda::allow_shared(do_nothing, 64 << 10) == cudaSuccess);
  CHECK(allowed() == 112 << 10);
  for (const int64_t bytes : {int64_t{112} << 10, int64_t{64} << 10, int64_t{0}}) {
    CHECK(cuda::launch(do_nothing, {dim3(1), 32, bytes}, nullptr, 0) == cudaSuccess);
  }
  CHECK(cuda::allow_shared(do_nothing, 163 << 10) == cudaSuccess);
  CHECK(allowed() == 163 << 10);
  cuda::emulation::reset();
}

}  // namespace attnscope::test
