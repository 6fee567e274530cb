// Sampled rows of a HunyuanVideo-sized head, S = 119 056 and d = 128, against double precision.
#include <cmath>

#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {

TEST_CASE("sampled rows of a sequence of 119056 tokens agree with double precision", "[numbers]") {
  // The rows of Q that are asked for are all there is of it; K is whole.
  const int64_t keys = 119056;
  const Oracle oracle({.shape = {1, 1, 1, 5, keys, 128}, .dtype = DType::bf16, .amplitude = 1.2});
  std::vector<Oracle::Row> expected;
  for (int64_t row = 0; row < 5; ++row) expected.push_back(oracle.row(0, 0, row));
  for (const NamedBackend& named : all_backends()) {
    // The slow paths are covered by shorter sequences.
    if (named.name == "reference" || named.name.find("scalar") != std::string::npos) continue;
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile tile(5, keys, 512, Encoding::f32);
    const auto norms = run.emit_panel(iota(5), {0, keys}, tile);
    double worst = 0;
    for (int64_t row = 0; row < 5; ++row) {
      const Oracle::Row& truth = expected[static_cast<size_t>(row)];
      const RowNorm& norm = norms[static_cast<size_t>(row)];
      CHECK(std::fabs(norm.lse() - truth.lse) <= 2e-5 + 2e-6 * std::fabs(truth.lse));
      double sum = 0;
      for (int64_t col = 0; col < keys; ++col) {
        const double weight = truth.weights[static_cast<size_t>(col)];
        const double tolerance =
            1e-3 / static_cast<double>(keys) + (1e-4 + 2 * 0x1p-24 * truth.magnitude) * weight;
        worst = std::max(worst, std::fabs(tile.value(row, col) - weight) / tolerance);
        sum += tile.value(row, col);
      }
      CHECK(std::fabs(sum - 1) <= 1e-5 + 0x1p-23 * std::fabs(truth.lse));
    }
    CHECK(worst <= 1);
    // Any rectangle alone has the same bits.
    GuardedTile part(5, 1000, 512, Encoding::f32);
    run.emit(iota(5), norms, {100000, 101000}, Quantity::weights, part);
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t col = 0; col < 1000; ++col) {
        REQUIRE(part.value(row, col) == tile.value(row, 100000 + col));
      }
    }
  }
}

}  // namespace attnscope::test
