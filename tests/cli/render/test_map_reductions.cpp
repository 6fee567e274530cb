#include <algorithm>
#include <cmath>

#include "cli/render/map_reductions.h"
#include "core/base/dtype.h"
#include "core/products/text_columns.h"
#include "io/capture/capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const Console kQuiet(true);

/// One head's map in double, row-major.
struct DenseMap {
  int64_t rows = 0, cols = 0;
  std::vector<double> p;
  double at(int64_t i, int64_t j) const { return p[static_cast<size_t>(i * cols + j)]; }
};

std::vector<float> head_values(const HeadTensor& tensor, int64_t head) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
  tensor.read_rows(0, head, {0, tensor.tokens()}, bytes.data());
  std::vector<float> values(static_cast<size_t>(tensor.tokens() * tensor.width()));
  to_floats(tensor.dtype(), bytes.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

DenseMap dense_map(const AttentionProblem& problem, int64_t head, bool causal) {
  const std::vector<float> q = head_values(problem.q(), head);
  const std::vector<float> k = head_values(problem.k(), problem.kv_head(head));
  DenseMap map{problem.num_queries(), problem.num_keys(), {}};
  const auto d = static_cast<size_t>(problem.head_dim());
  for (int64_t i = 0; i < map.rows; ++i) {
    std::vector<double> row;
    double sum = 0;
    for (int64_t j = 0; j < map.cols; ++j) {
      double s = 0;
      for (size_t c = 0; c < d; ++c) {
        s += static_cast<double>(q[static_cast<size_t>(i) * d + c]) *
             static_cast<double>(k[static_cast<size_t>(j) * d + c]);
      }
      row.push_back(causal && j > i ? 0.0 : std::exp(problem.scale() * s));
      sum += row.back();
    }
    for (const double e : row) map.p.push_back(e / sum);
  }
  return map;
}

Capture sample_capture(bool causal) {
  FactOverrides overrides;
  if (causal) overrides.mask = "causal";
  return Capture::open(sample("moving-shapes"), overrides);
}

HeadTask whole(const AttentionProblem& problem, int64_t head) {
  return {&problem, 0, head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
}

StreamRun make_run(const std::string& memory, int threads) {
  RunOptions options;
  options.memory = memory;
  options.threads = threads;
  return StreamRun(options, kQuiet, "test");
}

/// What two float32 products of the same map may differ by.
bool close(double got, double expected) {
  return std::abs(got - expected) <= 1e-7 + 2e-4 * std::abs(expected);
}

}  // namespace

TEST_CASE("pooled maps are the blocks' maxima and means", "[numbers]") {
  for (const bool causal : {false, true}) {
    const Capture capture = sample_capture(causal);
    const AttentionProblem& problem = *capture.calls()[1].problem;
    const DenseMap dense = dense_map(problem, 3, causal);
    std::vector<HeadTask> tasks{whole(problem, 2), whole(problem, 3)};
    for (const auto& [rows, keys] : {std::pair<IndexRange, IndexRange>{{0, 1024}, {0, 1024}},
                                     {{10, 900}, {3, 1020}},
                                     {{1000, 1001}, {0, 1024}}}) {
      for (HeadTask& task : tasks) {
        task.rows = rows;
        task.keys = keys;
      }
      for (const int64_t block : {1, 16, 100, 600, 5000}) {
        if (block == 1 && rows.size() > 1) continue;
        StreamRun run = make_run("256MiB", 2);
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
            wrong += !close(map.mean[at], sum / static_cast<double>(entries));
            wrong += !close(map.max[at], most);
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("segment masses and the metrics made of them") {
  const Capture capture = sample_capture(false);
  const AttentionProblem& problem = *capture.calls()[0].problem;
  const std::vector<HeadTask> tasks{whole(problem, 0), whole(problem, 3)};
  StreamRun run = make_run("256MiB", 2);
  const auto masses = segment_masses(tasks, run);
  const auto metrics = metrics_of_heads(tasks, run);
  REQUIRE(masses.size() == 2);
  REQUIRE(metrics.size() == 2);
  for (size_t t = 0; t < 2; ++t) {
    const DenseMap dense = dense_map(problem, tasks[t].head, false);
    const SegmentMass& mass = masses[t];
    REQUIRE(mass.query_segments == std::vector<int64_t>{SegmentMass::kText, 0, 1, 2, 3, 4, 5, 6});
    REQUIRE(mass.key_segments == mass.query_segments);
    const auto begin = [](size_t s) { return s == 0 ? int64_t{0} : 16 + 144 * (int64_t(s) - 1); };
    double text = 0, video = 0, own = 0;
    for (size_t a = 0; a < 8; ++a) {
      for (size_t b = 0; b < 8; ++b) {
        double sum = 0;
        for (int64_t i = begin(a); i < begin(a + 1); ++i) {
          for (int64_t j = begin(b); j < begin(b + 1); ++j) sum += dense.at(i, j);
        }
        INFO(a << " " << b);
        CHECK(close(mass.at(a, b), sum / static_cast<double>(begin(a + 1) - begin(a))));
        if (a > 0) (b == 0 ? text : video) += sum / 1008;
        if (a > 0 && a == b) own += sum / 1008;
      }
    }
    CHECK(close(metrics[t].find("text_mass").value(), text));
    CHECK(close(metrics[t].find("video_mass").value(), video));
    CHECK(close(metrics[t].find("same_frame_mass").value(), own));
  }
}

TEST_CASE("offset kernels hold the mass of every displacement") {
  for (const bool causal : {false, true}) {
    const Capture capture = sample_capture(causal);
    const AttentionProblem& problem = *capture.calls()[2].problem;
    const DenseMap dense = dense_map(problem, 1, causal);
    HeadTask task = whole(problem, 1);
    task.rows = task.keys = problem.key_tokens().video_range();
    StreamRun run = make_run("256MiB", 2);
    const auto kernels = offset_kernels(std::vector<HeadTask>{task}, run);
    REQUIRE(kernels.size() == 1);
    REQUIRE(kernels[0].mass.size() == 13 * 23 * 23);
    std::vector<double> expected(kernels[0].mass.size());
    for (int64_t i = 0; i < 1008; ++i) {
      for (int64_t j = 0; j < 1008; ++j) {
        const int64_t dt = j / 144 - i / 144, dy = j / 12 % 12 - i / 12 % 12, dx = j % 12 - i % 12;
        expected[static_cast<size_t>(((dt + 6) * 23 + dy + 11) * 23 + dx + 11)] +=
            dense.at(16 + i, 16 + j) / 1008;
      }
    }
    int wrong = 0;
    for (size_t n = 0; n < expected.size(); ++n) wrong += !close(kernels[0].mass[n], expected[n]);
    CHECK(wrong == 0);
  }
}

TEST_CASE("reductions have the same bits whatever the memory and threads") {
  const Capture capture = sample_capture(false);
  const AttentionProblem& problem = *capture.calls()[1].problem;
  const std::vector<HeadTask> tasks{whole(problem, 0), whole(problem, 1), whole(problem, 2)};
  std::vector<HeadTask> video = tasks;
  for (HeadTask& task : video) task.rows = task.keys = problem.key_tokens().video_range();
  StreamRun first = make_run("256MiB", 1);
  const auto maps = pooled_maps(tasks, 24, first);
  const auto kernels = offset_kernels(video, first);
  const auto masses = segment_masses(tasks, first);
  for (const auto& [memory, threads] :
       {std::pair<std::string, int>{"256MiB", 4}, {"4MiB", 1}, {"6MiB", 3}}) {
    INFO(memory << " " << threads);
    StreamRun run = make_run(memory, threads);
    const auto again = pooled_maps(tasks, 24, run);
    const auto moved = offset_kernels(video, run);
    const auto summed = segment_masses(tasks, run);
    for (size_t i = 0; i < tasks.size(); ++i) {
      CHECK(again[i].max == maps[i].max);
      CHECK(again[i].mean == maps[i].mean);
      CHECK(moved[i].mass == kernels[i].mass);
      CHECK(summed[i].mass == masses[i].mass);
    }
  }
}

TEST_CASE("text columns are the map's, or a share of the row's text") {
  const Capture capture = sample_capture(false);
  const AttentionProblem& problem = *capture.calls()[0].problem;
  const DenseMap dense = dense_map(problem, 3, false);
  HeadTask task = whole(problem, 3);
  task.rows = {16, 1024};
  task.keys = {0, 16};
  const std::vector<HeadTask> tasks{task};
  const std::vector<std::vector<int64_t>> chosen{{2, 15}};
  for (const bool within : {false, true}) {
    StreamRun run = make_run("256MiB", 2);
    TextColumns columns(tasks, chosen, within, run.budget());
    run.run(tasks, columns);
    const std::vector<float> red = columns.take(0, 0), last = columns.take(0, 1);
    REQUIRE(red.size() == 1008);
    int wrong = 0;
    for (int64_t i = 0; i < 1008; ++i) {
      double text = 0;
      for (int64_t j = 0; j < 16; ++j) text += dense.at(16 + i, j);
      const double mass = within ? text : 1;
      wrong += !close(red[static_cast<size_t>(i)], dense.at(16 + i, 2) / mass);
      wrong += !close(last[static_cast<size_t>(i)], dense.at(16 + i, 15) / mass);
    }
    CHECK(wrong == 0);
  }
}
