// Streams of attention outputs: what the engine binds, hands out and reserves for them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/checked_math.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/value_panels.h"
#include "tests/support/backend/fake_backend.h"
#include "tests/support/catch.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kWidth = 5, kQueries = 30, kKeys = 300;

/// A rule problem with V, kWidth channels.
AttentionProblem problem_with_values(Mask mask = {}) {
  AttentionProblem::Parts parts;
  const auto tensor = [](const char* name, int64_t tokens, int64_t width) {
    return HeadTensor(std::make_shared<RuleTensor>(name, std::vector<int64_t>{2, 3, tokens, width}),
                      Layout::bhsd);
  };
  parts.q = tensor("q", kQueries, 4);
  parts.k = tensor("k", kKeys, 4);
  parts.v = tensor("v", kKeys, kWidth);
  parts.mask = std::move(mask);
  parts.id.kind = CallKind::cross;
  parts.name = "rule";
  return AttentionProblem::make(std::move(parts));
}

TileRequest output_request() {
  TileRequest request;
  request.outputs = true;
  request.chunk_rows = 7;
  request.chunk_cols = 8;
  return request;
}

std::vector<HeadTask> all_heads(const AttentionProblem& problem) {
  std::vector<HeadTask> tasks;
  for (int64_t batch = 0; batch < 2; ++batch) {
    for (int64_t head = 0; head < 3; ++head) {
      tasks.push_back({&problem, batch, head, {2, kQueries}, {}, {0, kKeys}});
    }
  }
  return tasks;
}

/// Compares every output with the sum that it stands for.
class CheckingSink : public TileSink {
 public:
  TileRequest request() const override { return output_request(); }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    const std::lock_guard lock(mutex_);
    ++tiles;
    const HeadTask& task = *tile.task;
    if (tile.chunks.size() != 1 || tile.cols != IndexRange{0, kWidth} || !tile.first_segment ||
        static_cast<int64_t>(tile.norms.size()) != tile.rows.size()) {
      return void(++problems);
    }
    const auto* chunk = reinterpret_cast<const float*>(tile.chunks[0]);
    for (int64_t r = 0; r < 7; ++r) {
      const int64_t query = r < tile.rows.size() ? task.row_at(tile.rows.begin + r) : -1;
      for (int64_t c = 0; c < 8; ++c) {
        const auto got = static_cast<double>(chunk[r * 8 + c]);
        const double expected = query >= 0 && c < kWidth ? output(task, query, c) : 0;
        if (!(std::fabs(got - expected) <= 1e-5 * std::fabs(expected))) ++problems;
        ++outputs;
      }
      if (query < 0) continue;
      const RowNorm norm = tile.norms[static_cast<size_t>(r)];
      if (norm.exponent != fake_norm(task.batch, task.head, query).exponent) ++problems;
    }
  }
  void end() override { ++ends; }

  int tiles = 0, problems = 0, outputs = 0, ends = 0;

 private:
  static double output(const HeadTask& task, int64_t query, int64_t channel) {
    std::vector<float> bias(static_cast<size_t>(kKeys));
    task.problem->mask().fill_bias(task.batch, task.head, {&query, 1}, {0, kKeys}, bias.data(),
                                   kKeys);
    double sum = 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      if (bias[static_cast<size_t>(j)] < 0) continue;
      const auto value =
          double{RuleTensor::row_value(task.batch, task.head, j)} + static_cast<double>(channel);
      sum += double{fake_weight(task.batch, task.head, query, j)} * value;
    }
    return sum;
  }

  std::mutex mutex_;
};

}  // namespace

TEST_CASE("a stream of outputs delivers every row once, with all channels") {
  for (const bool causal : {false, true}) {
    const AttentionProblem problem = problem_with_values(causal ? Mask::causal() : Mask());
    const std::vector<HeadTask> tasks = all_heads(problem);
    FakeBackend backend;
    const TilePlan plan = plan_tiles(tasks, output_request(), backend, int64_t{1} << 30);
    CHECK(plan.tiles == 6 * 4);
    CHECK(plan.bound_heads == 2);
    CHECK(plan.bytes_bound >=
          2 * (backend.bind_cost(problem).resident + BoundValues::bytes(problem)) +
              BoundValues::transient_bytes(problem));
    MemoryBudget budget(plan.bytes_total);
    CheckingSink sink;
    CHECK(StreamingEngine(backend, budget).run(tasks, plan, sink));
    CHECK(sink.ends == 1);
    CHECK(sink.tiles == plan.tiles);
    CHECK(sink.outputs == 6 * 4 * 7 * 8);
    CHECK(sink.problems == 0);
    CHECK(budget.available() == budget.limit());
  }
}

TEST_CASE("the work of outputs counts both products, and what the mask leaves") {
  const AttentionProblem problem = problem_with_values();
  const std::vector<HeadTask> tasks = all_heads(problem);
  FakeBackend backend;
  const TilePlan plan = plan_tiles(tasks, output_request(), backend, int64_t{1} << 30);
  CHECK(plan.entries == 6 * (kQueries - 2) * kKeys);
  CHECK(plan.flops == 2.0 * (4 + kWidth) * 6 * (kQueries - 2) * kKeys);
  const AttentionProblem nothing = problem_with_values(Mask::key_lengths({0, kKeys}, kKeys));
  const TilePlan half = plan_tiles(all_heads(nothing), output_request(), backend, int64_t{1} << 30);
  CHECK(half.entries == plan.entries / 2);
}

TEST_CASE("tiles of outputs that are there already are not computed") {
  const AttentionProblem problem = problem_with_values();
  const std::vector<HeadTask> tasks = all_heads(problem);
  FakeBackend backend;
  const TilePlan plan = plan_tiles(tasks, output_request(), backend, int64_t{1} << 30);
  MemoryBudget budget(plan.bytes_total);
  CheckingSink sink;
  StreamControl control;
  control.skip = [](int64_t task, IndexRange rows, IndexRange cols) {
    return cols == IndexRange{0, kWidth} && (task != 4 || rows.begin != 7);
  };
  CHECK(StreamingEngine(backend, budget).run(tasks, plan, sink, control));
  CHECK(sink.tiles == 1);
  CHECK(sink.problems == 0);
  CHECK(backend.calls(FakeCall::row_norms) == 1);
}

TEST_CASE("V is widened exactly and padded with zeros") {
  const AttentionProblem problem = problem_with_values();
  const BoundValues values(problem, 1, 2);
  const ValuePanels panels = values.panels();
  CHECK(panels.panels() == 1);
  int64_t wrong = 0;
  for (int64_t j = 0; j < kKeys; ++j) {
    for (int64_t c = 0; c < kValueChannels; ++c) {
      const float expected =
          c < kWidth ? RuleTensor::row_value(1, 2, j) + static_cast<float>(c) : 0.0f;
      wrong += panels.at(j, c) != expected;
    }
  }
  CHECK(wrong == 0);
}
