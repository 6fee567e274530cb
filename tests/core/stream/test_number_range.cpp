#include <cmath>
#include <limits>

#include "core/stream/logit_check.h"
#include "core/stream/null_sink.h"
#include "core/stream/number_range.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"
#include "core/stream/value_check.h"
#include "kernels/backend_factory.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 40, kWidth = 16;

struct Sizes {
  double q, k, scale;
  ScoreFunction score = ScoreFunction::softmax;
};

AttentionProblem problem_of(const Sizes& sizes, const Mask& mask = {}) {
  std::mt19937_64 random(7);
  const auto numbers = [&](double size) {
    std::vector<float> values;
    for (int64_t i = 0; i < kTokens * kWidth; ++i) {
      const double share = static_cast<double>(pick(random, 1, 2000)) / 1000;
      values.push_back(static_cast<float>((i % 3 == 0 ? -share : share) * size));
    }
    return values;
  };
  const std::vector<int64_t> shape{1, 1, kTokens, kWidth};
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(make_tensor("q", DType::f32, shape, numbers(sizes.q)), Layout::bhsd);
  parts.k = HeadTensor(make_tensor("k", DType::f32, shape, numbers(sizes.k)), Layout::bhsd);
  parts.query_tokens = parts.key_tokens = TokenGrid::unknown(kTokens);
  parts.scale = sizes.scale;
  parts.score = sizes.score;
  parts.mask = mask;
  parts.name = "test";
  return AttentionProblem::make(std::move(parts));
}

std::unique_ptr<TileBackend> backend_called(const char* name) {
  return make_backend(parse_backend(name), {.threads = 1});
}

/// The message of the value scan before a run; empty where it finds nothing.
std::string found(const AttentionProblem& problem, const char* name) {
  const auto backend = backend_called(name);
  const HeadTask task{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
  try {
    check_values({&task, 1}, {}, {.backend = backend.get()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The message of the check of stored logits; empty where it finds nothing.
std::string found_of_logits(const AttentionProblem& problem, const char* name) {
  const auto backend = backend_called(name);
  MemoryBudget budget(64 << 20);
  const HeadTask task{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
  try {
    const auto magnitudes = check_values({&task, 1}, {}, {});
    check_stored_logits({&task, 1}, magnitudes, *backend, budget, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("heads whose weights subnormal numbers or products would change are refused") {
  for (const Sizes& sizes :
       {Sizes{1e-38, 5e37, 1}, Sizes{5e37, 1e-38, 1}, Sizes{1e-19, 1e-19, 1e38},
        Sizes{1e-18, 1e-18, 1e36}, Sizes{1e18, 1e18, 1e-39},
        Sizes{1e-36, 1e36, 1, ScoreFunction::linear_relu}}) {
    INFO(sizes.q << " " << sizes.k << " " << sizes.scale);
    const std::string said = found(problem_of(sizes), "cpu");
    INFO(said);
    CHECK(has(said, "head 0: numbers or products of q and k are subnormal"));
    CHECK(has(said, "--backend reference"));
    CHECK(found(problem_of(sizes), "reference") == "");
  }
  for (const Sizes& sizes :
       {Sizes{1, 1, 0.25}, Sizes{1e-15, 1e-15, 1e30}, Sizes{1e-40, 1, 1}, Sizes{1e-20, 1e20, 1},
        Sizes{1e6, 3e37, 1e-30}, Sizes{1e-22, 1e-22, 1, ScoreFunction::linear_relu}}) {
    INFO(sizes.q << " " << sizes.k << " " << sizes.scale);
    CHECK(found(problem_of(sizes), "cpu") == "");
  }
}

TEST_CASE("a scan returns the largest numbers of each task") {
  const AttentionProblem problem = problem_of({3, 0.5, 1});
  const HeadTask task{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
  const auto found = check_values({&task, 1}, {}, {});
  REQUIRE(found.size() == 1);
  CHECK((found.front().q > 5.5 && found.front().q <= 6));
  CHECK((found.front().k > 0.9 && found.front().k <= 1));
}

TEST_CASE("logits that float32 does not hold are found before they are stored") {
  const std::string what = "the logit, or a product on the way to it, is more than float32 holds";
  for (const char* const backend : {"cpu", "reference"}) {
    INFO(backend);
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid}) {
      const std::string said = found_of_logits(problem_of({1e20, 1e15, 1e5, score}), backend);
      INFO(said);
      CHECK(has(said, "head 0, query 0, key 0: " + what));
    }
    // A masked logit is −inf, and so it should be.
    CHECK(found_of_logits(problem_of({1e18, 1e18, 1}, Mask::causal()), backend) == "");
    CHECK(found_of_logits(problem_of({1, 1, 1}), backend) == "");
  }
  // Only products on the way are too large: double holds them.
  CHECK(has(found_of_logits(problem_of({1e20, 1e20, 1e-39}), "cpu"), what));
  CHECK(found_of_logits(problem_of({1e20, 1e20, 1e-39}), "reference") == "");
}

TEST_CASE("sums of linear features that float32 loses are refused, those that are 0 are not") {
  const auto said = [](const AttentionProblem& problem, const char* name) -> std::string {
    const auto backend = backend_called(name);
    MemoryBudget budget(64 << 20);
    const HeadTask task{&problem, 0, 0, {0, kTokens}, {}, {0, kTokens}};
    const TileRequest request{.entries = false};
    NullSink sink(request);
    try {
      const TilePlan plan = plan_tiles({&task, 1}, request, *backend, budget.available());
      StreamingEngine(*backend, budget).run({&task, 1}, plan, sink);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string lost =
      "the scores add up to more or less than float32 holds (--backend reference counts in double)";
  const AttentionProblem tiny = problem_of({1e-22, 1e-22, 1, ScoreFunction::linear_relu});
  CHECK(has(said(tiny, "cpu"), lost));
  CHECK(said(tiny, "reference") == "");
  // No feature of the queries or of the keys: all products are 0.
  const ScoreFunction relu = ScoreFunction::linear_relu;
  CHECK(said(problem_of({1, 1, 1, relu}), "cpu") == "");
  std::vector<float> below(static_cast<size_t>(kTokens * kWidth), -1e-22f);
  for (const bool of_keys : {false, true}) {
    AttentionProblem::Parts parts;
    const std::vector<int64_t> shape{1, 1, kTokens, kWidth};
    std::vector<float> above(below.size(), 1e-22f);
    parts.q =
        HeadTensor(make_tensor("q", DType::f32, shape, of_keys ? above : below), Layout::bhsd);
    parts.k =
        HeadTensor(make_tensor("k", DType::f32, shape, of_keys ? below : above), Layout::bhsd);
    parts.query_tokens = parts.key_tokens = TokenGrid::unknown(kTokens);
    parts.scale = 1;
    parts.score = relu;
    parts.name = "test";
    CHECK(said(AttentionProblem::make(std::move(parts)), "cpu") == "");
  }
  // The only key with features is the last, which the mask leaves the last query alone.
  for (const bool last_meets : {false, true}) {
    AttentionProblem::Parts parts;
    const std::vector<int64_t> shape{1, 1, kTokens, kWidth};
    std::vector<float> q(below.size(), 1e-22f), k = below;
    const auto end = static_cast<std::ptrdiff_t>(below.size());
    std::fill(k.begin() + end - kWidth, k.end(), 1e-22f);
    if (!last_meets) std::fill(q.begin() + end - kWidth, q.end(), -1e-22f);
    parts.q = HeadTensor(make_tensor("q", DType::f32, shape, q), Layout::bhsd);
    parts.k = HeadTensor(make_tensor("k", DType::f32, shape, k), Layout::bhsd);
    parts.query_tokens = parts.key_tokens = TokenGrid::unknown(kTokens);
    parts.scale = 1;
    parts.score = relu;
    parts.mask = Mask::causal();
    parts.name = "test";
    const std::string found = said(AttentionProblem::make(std::move(parts)), "cpu");
    CHECK(has(found, lost) == last_meets);
  }
}
