#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/patterns/mask_lines.h"
#include "core/patterns/mask_recall.h"
#include "core/patterns/mask_summary.h"
#include "core/patterns/top_mass.h"
#include "core/problem/sampled_rows.h"
#include "core/products/rollout/rollout.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("the sum of the largest weights is that of a sorted row") {
  std::mt19937_64 random(5);
  TopMass top;
  for (int round = 0; round < 60; ++round) {
    std::vector<float> row(static_cast<size_t>(pick(random, 1, 700)));
    for (float& weight : row) {
      // Many equal ones, zeros, and many magnitudes.
      weight = std::ldexp(static_cast<float>(pick(random, 0, 5)), -static_cast<int>(random() % 40));
      weight = std::min(weight / 4, 1.0f);
    }
    if (round == 0) std::fill(row.begin(), row.end(), 0.25f);
    if (round == 1) std::fill(row.begin(), row.end(), 0.0f);
    std::vector<float> sorted = row;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    top.set_row(row);
    double sum = 0;
    bool good = true;
    for (size_t count = 0; count <= row.size(); ++count) {
      good = good && std::abs(top.largest(static_cast<int64_t>(count)) - sum) <= 1e-12 * (1 + sum);
      if (count < row.size()) sum += double{sorted[count]};
    }
    INFO("round " << round);
    CHECK(good);
  }
}

TEST_CASE("quantiles interpolate as numpy's do") {
  CHECK_FALSE(quantile({}, 0.5).has_value());
  CHECK(quantile({3}, 0.05) == 3.0);
  // numpy.quantile([4, 1, 3, 2, 10], [0, .05, .5, .95, 1])
  const std::vector<double> values{4, 1, 3, 2, 10};
  CHECK(std::abs(*quantile(values, 0.05) - 1.2) < 1e-12);
  CHECK(*quantile(values, 0.5) == 3.0);
  CHECK(std::abs(*quantile(values, 0.95) - 8.8) < 1e-12);
  CHECK(*quantile(values, 0) == 1.0);
  CHECK(*quantile(values, 1) == 10.0);
}

TEST_CASE("sampled rows are spread evenly") {
  CHECK(sampled_rows(3, 8) == std::vector<int64_t>{0, 1, 2});
  CHECK(sampled_rows(8, 8).size() == 8);
  CHECK(sampled_rows(10, 4) == std::vector<int64_t>{1, 3, 6, 8});
  const auto rows = sampled_rows(119056, 256);
  CHECK(rows.size() == 256);
  CHECK(rows.front() == 232);
  CHECK(rows.back() == 118823);
}

namespace {

/// A tile of whole rows for a sink.
void feed(TileSink& sink, const HeadTask& task, IndexRange rows, std::vector<float>& weights) {
  std::byte* chunk = reinterpret_cast<std::byte*>(weights.data());
  std::vector<RowNorm> norms(static_cast<size_t>(rows.size()), RowNorm{1, 0});
  sink.consume({&task, 0, rows, {0, task.keys.size()}, {&chunk, 1}, norms, true});
}

TileRequest whole_rows(int64_t rows, int64_t keys) {
  TileRequest request;
  request.chunk_rows = rows;
  request.chunk_cols = keys;
  return request;
}

}  // namespace

TEST_CASE("columns and diagonals with the most mass") {
  const AttentionProblem problem = rule_problem(1, 1, 6, 5, 4);
  const std::vector<int64_t> rows{1, 4};
  const HeadTask task{&problem, 0, 0, {}, rows, {0, 5}};
  MemoryBudget budget(1 << 20);
  LineCollector lines(problem, whole_rows(1, 5), budget);
  // Diagonals j − i of row 1: −1 … 3, of row 4: −4 … 0; diagonal 0 gets 0.4 + 0.3.
  std::vector<float> first{0.1f, 0.4f, 0.2f, 0.3f, 0.0f};
  std::vector<float> second{0.05f, 0.0f, 0.65f, 0.0f, 0.3f};
  feed(lines, task, {1, 2}, second);
  feed(lines, task, {0, 1}, first);
  CHECK(lines.top_columns(2) == std::vector<int64_t>{1, 2});
  CHECK(lines.top_columns(9) == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(lines.top_diagonals(2) == std::vector<int64_t>{-2, 0});
  // Only those with mass.
  CHECK(lines.top_diagonals(100) == std::vector<int64_t>{-4, -2, -1, 0, 1, 2});

  const Mask mask = line_mask({4, 0}, {-2, 0});
  std::vector<float> bias(5);
  for (int64_t i = 0; i < 6; ++i) {
    mask.fill_bias(0, 0, {&i, 1}, {0, 5}, bias.data(), 5);
    for (int64_t j = 0; j < 5; ++j) {
      const bool kept = j == 0 || j == 4 || j - i == -2 || j == i;
      CHECK((bias[static_cast<size_t>(j)] == 0) == kept);
    }
  }
  CHECK(mask.classify(0, 0, {0, 1}, {1, 4}) == TileClass::empty);
  CHECK(mask.classify(0, 0, {2, 3}, {0, 1}) == TileClass::full);
}

TEST_CASE("the scores of masks tell rows apart that the call or the mask leaves empty") {
  const AttentionProblem problem = rule_problem(1, 1, 3, 4, 4, Mask::key_lengths({3}, 4));
  const HeadTask task{&problem, 0, 0, {0, 3}, {}, {0, 4}};
  MemoryBudget budget(8 << 20);
  BlockMask keep{1, 3, 4, 1, 1, {1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1}};
  const std::vector<Mask> masks{Mask::blocks(keep), Mask()};
  MaskRecall probe(task, masks, {.oracle = true}, whole_rows(3, 4), 1, budget);
  std::vector<float> weights{0.5f, 0.3f, 0.2f, 0, 0.5f, 0.25f, 0.25f, 0, 0, 0, 0, 0};
  std::byte* chunk = reinterpret_cast<std::byte*>(weights.data());
  // The last row is fully masked.
  std::vector<RowNorm> norms{{1, 0}, {1, 0}, {0, 0}};
  probe.consume({&task, 0, {0, 3}, {0, 4}, {&chunk, 1}, norms, true});
  const MaskQuality score = summarise_mask(probe, probe, 0, 4, false);
  CHECK(score.density == 8.0 / 12);
  CHECK(score.effective_density == 5.0 / 12);
  CHECK(score.masked_rows == 1);
  CHECK(score.empty_rows == 1);
  CHECK(std::abs(*score.recall - (0.7 + 0) / 2) < 1e-6);
  CHECK(std::abs(*score.oracle_recall - (1 + 0.5) / 2) < 1e-6);
  CHECK_FALSE(score.oracle_stderr.has_value());
  CHECK_FALSE(score.output_error.has_value());
  const MaskQuality all = summarise_mask(probe, probe, 1, 4, false);
  CHECK(all.density == 1.0);
  CHECK(std::abs(*all.recall - 1) < 1e-6);
  CHECK(all.empty_rows == 0);
}

TEST_CASE("a layer of a rollout is a vector times the mean map") {
  const int64_t n = 40, heads = 2;
  const AttentionProblem problem = rule_problem(1, heads, n, n, 4);
  std::mt19937_64 random(9);
  std::vector<std::vector<float>> maps(2, std::vector<float>(static_cast<size_t>(n * n)));
  for (auto& map : maps) {
    for (float& weight : map) weight = static_cast<float>(pick(random, 0, 1000)) / 40000.0f;
  }
  std::vector<double> start(static_cast<size_t>(n));
  for (double& value : start) value = static_cast<double>(pick(random, 0, 10)) / 400;
  for (size_t i = 16; i < 32; ++i) start[i] = 0;
  for (const auto direction : {RolloutDirection::to_inputs, RolloutDirection::to_outputs}) {
    MemoryBudget budget(8 << 20);
    RolloutLayer layer(start, heads, direction, whole_rows(16, n), 1, budget);
    CHECK(layer.is_idle({16, 32}) == (direction == RolloutDirection::to_inputs));
    CHECK_FALSE(layer.is_idle({15, 32}));
    for (int64_t h = 0; h < heads; ++h) {
      const HeadTask task{&problem, 0, h, {0, n}, {}, {0, n}};
      for (int64_t first = 0; first < n; first += 16) {
        const IndexRange rows{first, std::min(first + 16, n)};
        std::vector<float> part(maps[static_cast<size_t>(h)].begin() + rows.begin * n,
                                maps[static_cast<size_t>(h)].begin() + rows.end * n);
        feed(layer, task, rows, part);
      }
    }
    const std::vector<double> result = layer.next();
    double worst = 0;
    for (int64_t a = 0; a < n; ++a) {
      double through = 0;
      for (const auto& map : maps) {
        for (int64_t b = 0; b < n; ++b) {
          const int64_t entry = direction == RolloutDirection::to_inputs ? b * n + a : a * n + b;
          through += start[static_cast<size_t>(b)] * map[static_cast<size_t>(entry)] / 2;
        }
      }
      const double expected = (start[static_cast<size_t>(a)] + through) / 2;
      worst = std::max(worst, std::abs(result[static_cast<size_t>(a)] - expected));
    }
    CHECK(worst < 1e-14);
  }
}
