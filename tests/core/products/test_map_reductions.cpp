#include <algorithm>
#include <cmath>

#include "core/products/map_reductions.h"
#include "tests/core/products/product_case.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// One head's map in double, row-major.
struct DenseMap {
  DenseMap(const Oracle& oracle, int64_t head) : cols(oracle.problem().num_keys()) {
    for (int64_t i = 0; i < oracle.problem().num_queries(); ++i) {
      const auto row = oracle.row(0, head, i).weights;
      p.insert(p.end(), row.begin(), row.end());
    }
  }
  double at(int64_t i, int64_t j) const { return p[static_cast<size_t>(i * cols + j)]; }

  int64_t cols = 0;
  std::vector<double> p;
};

/// 4 text tokens before 7 frames of 6 x 6 (256 tokens).
AttentionCase seven_frames(bool causal) {
  AttentionCase c = joint_case(causal ? "causal" : "none");
  c.shape.queries = c.shape.keys = 256;
  c.grid = {7, 6, 6};
  return c;
}

}  // namespace

TEST_CASE("pooled maps are the blocks' maxima and means", "[numbers]") {
  for (const bool causal : {false, true}) {
    const Oracle oracle(seven_frames(causal));
    const DenseMap dense(oracle, 3);
    std::vector<HeadTask> tasks{whole_map(oracle.problem(), 2), whole_map(oracle.problem(), 3)};
    const auto backend = std::move(two_backends()[1]);
    for (const auto& [rows, keys] : {std::pair<IndexRange, IndexRange>{{0, 256}, {0, 256}},
                                     {{10, 230}, {3, 251}},
                                     {{200, 201}, {0, 256}}}) {
      for (HeadTask& task : tasks) {
        task.rows = rows;
        task.keys = keys;
      }
      for (const int64_t block : {1, 16, 50, 150, 5000}) {
        if (block == 1 && rows.size() > 1) continue;
        BudgetedReductions run(*backend);
        const auto maps = pooled_maps(tasks, block, run);
        REQUIRE(maps.size() == 2);
        const PooledMap& map = maps[1];
        INFO("causal " << causal << " block " << block << " rows " << rows.begin);
        REQUIRE(map.rows == (rows.size() + block - 1) / block);
        REQUIRE(map.cols == (keys.size() + block - 1) / block);
        int wrong = 0;
        for (int64_t r = 0; r < map.rows; ++r) {
          for (int64_t c = 0; c < map.cols; ++c) {
            double sum = 0, most = 0;
            int64_t entries = 0;
            for (int64_t i = rows.begin + r * block;
                 i < std::min(rows.end, rows.begin + (r + 1) * block); ++i) {
              for (int64_t j = keys.begin + c * block;
                   j < std::min(keys.end, keys.begin + (c + 1) * block); ++j) {
                sum += dense.at(i, j);
                most = std::max(most, dense.at(i, j));
                ++entries;
              }
            }
            const auto at = static_cast<size_t>(r * map.cols + c);
            wrong += !near(map.mean[at], sum / static_cast<double>(entries));
            wrong += !near(map.max[at], most);
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("segment masses and the metrics made of them") {
  for (const bool causal : {false, true}) {
    const Oracle oracle(seven_frames(causal));
    const std::vector<HeadTask> tasks{whole_map(oracle.problem(), 0),
                                      whole_map(oracle.problem(), 3)};
    const auto backend = std::move(two_backends()[1]);
    BudgetedReductions run(*backend);
    const auto masses = segment_masses(tasks, run);
    const auto metrics = metrics_of_heads(tasks, run);
    REQUIRE(masses.size() == 2);
    REQUIRE(metrics.size() == 2);
    for (size_t t = 0; t < 2; ++t) {
      const DenseMap dense(oracle, tasks[t].head);
      const SegmentMass& mass = masses[t];
      REQUIRE(mass.query_segments == std::vector<int64_t>{SegmentMass::kText, 0, 1, 2, 3, 4, 5, 6});
      REQUIRE(mass.key_segments == mass.query_segments);
      CHECK(mass.same_grid);
      const auto begin = [](size_t s) { return s == 0 ? int64_t{0} : 4 + 36 * (int64_t(s) - 1); };
      double text = 0, video = 0, own = 0;
      for (size_t a = 0; a < 8; ++a) {
        for (size_t b = 0; b < 8; ++b) {
          double sum = 0;
          for (int64_t i = begin(a); i < begin(a + 1); ++i) {
            for (int64_t j = begin(b); j < begin(b + 1); ++j) sum += dense.at(i, j);
          }
          INFO(a << " " << b);
          CHECK(near(mass.at(a, b), sum / static_cast<double>(begin(a + 1) - begin(a))));
          if (a > 0) (b == 0 ? text : video) += sum / 252;
          if (a > 0 && a == b) own += sum / 252;
        }
        CHECK(mass.live_rows[a] == begin(a + 1) - begin(a));
      }
      CHECK(near(metrics[t].text_mass.value.value(), text));
      CHECK(near(metrics[t].video_mass.value.value(), video));
      CHECK(near(metrics[t].same_frame_mass.value.value(), own));
    }
  }
}

TEST_CASE("offset kernels hold the mass of every displacement") {
  for (const bool causal : {false, true}) {
    const Oracle oracle(seven_frames(causal));
    const DenseMap dense(oracle, 1);
    HeadTask task = whole_map(oracle.problem(), 1);
    task.rows = task.keys = oracle.problem().key_tokens().video_range();
    const auto backend = std::move(two_backends()[1]);
    BudgetedReductions run(*backend);
    const auto kernels = offset_kernels(std::vector<HeadTask>{task}, run);
    REQUIRE(kernels.size() == 1);
    std::vector<double> expected(13 * 11 * 11);
    for (int64_t i = 0; i < 252; ++i) {
      for (int64_t j = 0; j < 252; ++j) {
        const int64_t dt = j / 36 - i / 36, dy = j / 6 % 6 - i / 6 % 6, dx = j % 6 - i % 6;
        expected[static_cast<size_t>(((dt + 6) * 11 + dy + 5) * 11 + dx + 5)] +=
            dense.at(4 + i, 4 + j) / 252;
      }
    }
    CHECK(count_wrong(kernels[0].mass, expected) == 0);
  }
}

TEST_CASE("reductions have the same bits whatever the memory and threads") {
  const Oracle oracle(seven_frames(false));
  std::vector<HeadTask> tasks;
  for (const int64_t head : {0, 1, 2}) tasks.push_back(whole_map(oracle.problem(), head));
  std::vector<HeadTask> video = tasks;
  for (HeadTask& task : video) task.rows = task.keys = oracle.problem().key_tokens().video_range();
  std::vector<std::vector<PooledMap>> maps;
  std::vector<std::vector<OffsetKernel>> kernels;
  std::vector<std::vector<SegmentMass>> masses;
  for (const auto& [bytes, threads] : {std::pair<int64_t, int>{int64_t{1} << 26, 1},
                                       {int64_t{1} << 26, 4},
                                       {int64_t{6} << 18, 1},
                                       {int64_t{1} << 21, 3}}) {
    INFO(bytes << " " << threads);
    const auto backend = std::move(two_backends(threads)[1]);
    BudgetedReductions run(*backend, bytes, threads);
    maps.push_back(pooled_maps(tasks, 24, run));
    kernels.push_back(offset_kernels(video, run));
    masses.push_back(segment_masses(tasks, run));
    for (size_t i = 0; i < tasks.size(); ++i) {
      CHECK(maps.back()[i].max == maps.front()[i].max);
      CHECK(maps.back()[i].mean == maps.front()[i].mean);
      CHECK(kernels.back()[i].mass == kernels.front()[i].mass);
      CHECK(masses.back()[i].mass == masses.front()[i].mass);
    }
  }
}

TEST_CASE("a run that is only planned yields nothing") {
  const Oracle oracle(seven_frames(false));
  const std::vector<HeadTask> tasks{whole_map(oracle.problem(), 0)};
  const auto backend = std::move(two_backends()[0]);
  BudgetedReductions run(*backend);
  run.plan_only = true;
  CHECK(pooled_maps(tasks, 16, run).empty());
  CHECK(segment_masses(tasks, run).empty());
  CHECK(offset_kernels(tasks, run).empty());
  CHECK(metrics_of_heads(tasks, run).empty());
}

TEST_CASE("the block of a picture is the smallest power of two that fits") {
  const Oracle oracle(joint_case());
  std::vector<HeadTask> tasks{whole_map(oracle.problem(), 0)};
  CHECK(fitting_block(tasks, 64) == 1);
  CHECK(fitting_block(tasks, 63) == 2);
  CHECK(fitting_block(tasks, 1) == 64);
  tasks.front().rows = {0, 5};
  tasks.front().keys = {0, 3};
  CHECK(fitting_block(tasks, 2) == 4);
}
