// Every backend × dtype × mask × shape × score against entries computed directly in double.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace attnscope::test {
namespace {

std::string place(const char* what, int64_t row, int64_t col) {
  return std::string(what) + " (" + std::to_string(row) + ", " + std::to_string(col) + ")";
}

/// The element that is furthest outside its tolerance.
struct Worst {
  double excess = 0;  ///< |error| / tolerance
  std::string text;

  void take(double got, double expected, double tolerance, const char* what, int64_t row,
            int64_t col) {
    const double error = std::fabs(got - expected) / tolerance;
    if (got == expected || error <= excess) return;
    excess = std::isnan(error) ? 1e300 : error;
    text = place(what, row, col) + ": got " + std::to_string(got) + ", expected " +
           std::to_string(expected) + ", error " + std::to_string(std::fabs(got - expected)) +
           " is " + std::to_string(excess) + " of the tolerance";
  }
  void check() const {
    INFO(text);
    CHECK(excess <= 1);
  }
};

/// Relative tolerance of a weight: its own logit and the row's sum.
double weight_tolerance(double logit_error) { return 1e-4 + 2 * logit_error; }

/// A case and its expected rows, kept for all backends.
struct Expected {
  const Oracle& oracle;
  int64_t batch, head;
  std::vector<Oracle::Row> rows;

  Expected(const Oracle& o, int64_t b, int64_t h) : oracle(o), batch(b), head(h) {
    for (int64_t i = 0; i < o.problem().num_queries(); ++i) rows.push_back(o.row(b, h, i));
  }
};

void check_norms(const Expected& expected, const NamedBackend& named,
                 const std::vector<RowNorm>& norms, Worst& worst) {
  for (size_t i = 0; i < norms.size(); ++i) {
    const Oracle::Row& row = expected.rows[i];
    const double lse = row.lse;
    if (std::isinf(lse)) {
      CHECK(norms[i].sum == 0);
      CHECK(norms[i].exponent == 0);
      continue;
    }
    CHECK((norms[i].sum >= 1 && norms[i].sum < 2));
    worst.take(
        norms[i].lse(), lse,
        2e-5 + 2e-6 * std::fabs(lse) + lse_error_of(named, expected.oracle.description(), row),
        "lse", static_cast<int64_t>(i), 0);
  }
}

void check_weights(const Expected& expected, const NamedBackend& named, const GuardedTile& tile,
                   Worst& worst) {
  const ScoreFunction score = expected.oracle.problem().score();
  for (size_t i = 0; i < expected.rows.size(); ++i) {
    const Oracle::Row& row = expected.rows[i];
    const double floor = 1e-3 / static_cast<double>(row.weights.size());
    const double relative =
        weight_tolerance(logit_error_of(named, expected.oracle.description(), row));
    const auto r = static_cast<int64_t>(i);
    double sum = 0;
    for (size_t j = 0; j < row.weights.size(); ++j) {
      const auto c = static_cast<int64_t>(j);
      const double weight = row.weights[j];
      sum += tile.value(r, c);
      worst.take(tile.value(r, c), weight, floor + relative * weight, "weight", r, c);
      if (std::isinf(row.logits[j]) && tile.value(r, c) != 0) {
        FAIL_CHECK(place("a masked weight is not 0:", r, c));
      }
    }
    if (score == ScoreFunction::sigmoid) continue;
    const double expected_sum = std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
    worst.take(sum, expected_sum, 1e-5 + 0x1p-23 * std::fabs(row.lse), "row sum", r, 0);
  }
}

void check_logits(const Expected& expected, const NamedBackend& named, const HeadRun& run,
                  Worst& worst) {
  const AttentionProblem& problem = expected.oracle.problem();
  const IndexRange keys{std::min<int64_t>(3, problem.num_keys() - 1), problem.num_keys()};
  GuardedTile tile(problem.num_queries(), keys.size(), 64, Encoding::f32);
  run.emit(iota(problem.num_queries()), {}, keys, Quantity::logits, tile);
  CHECK(tile.guards_intact());
  for (size_t i = 0; i < expected.rows.size(); ++i) {
    const Oracle::Row& row = expected.rows[i];
    for (int64_t c = 0; c < keys.size(); ++c) {
      const auto r = static_cast<int64_t>(i);
      const double logit = row.logits[static_cast<size_t>(keys.begin + c)];
      // Of random signs, errors of d roundings grow with the root of their number.
      const double of_signs =
          0x1p-24 * row.magnitude * (4 + std::sqrt(static_cast<double>(problem.head_dim())));
      const double proven = logit_error_of(named, expected.oracle.description(), row);
      const double bound = row.one_sign ? proven : std::max(of_signs, proven);
      worst.take(tile.value(r, c), logit, 1e-12 + bound, "logit", r, c + keys.begin);
    }
  }
}

void check_head(const Expected& expected, const NamedBackend& named) {
  const AttentionProblem& problem = expected.oracle.problem();
  INFO(expected.oracle.text() << " b=" << expected.batch << " h=" << expected.head << ", backend "
                              << named.name);
  const HeadRun run(expected.oracle, *named.backend, expected.batch, expected.head);
  const std::vector<int64_t> rows = iota(problem.num_queries());
  GuardedTile tile(problem.num_queries(), problem.num_keys(), 100, Encoding::f32);
  Worst worst;
  if (problem.score() == ScoreFunction::sigmoid) {
    run.emit(rows, {}, {0, problem.num_keys()}, Quantity::weights, tile);
  } else {
    const auto norms = run.emit_panel(rows, {0, problem.num_keys()}, tile);
    check_norms(expected, named, norms, worst);
  }
  CHECK(tile.guards_intact());
  check_weights(expected, named, tile, worst);
  if (!is_linear(problem.score())) check_logits(expected, named, run, worst);
  worst.check();
}

/// The first and the last head of the case on every backend.
void check_case(const AttentionCase& description) {
  static const std::vector<NamedBackend> backends = all_backends();
  const Oracle oracle(description);
  std::vector<Expected> heads;
  heads.emplace_back(oracle, 0, 0);
  if (description.shape.batch * description.shape.heads > 1) {
    heads.emplace_back(oracle, description.shape.batch - 1, description.shape.heads - 1);
  }
  for (const NamedBackend& named : backends) {
    if (named.is_twin_for(description.dtype) || named.leaves(oracle.problem())) continue;
    for (const Expected& expected : heads) check_head(expected, named);
  }
}

constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("every shape and dtype agrees with double precision", "[numbers]") {
  const Shape shapes[] = {
      {1, 1, 1, 1, 1, 1},     {1, 1, 1, 1, 5, 3},     {1, 1, 1, 3, 257, 1},
      {1, 1, 1, 130, 31, 3},  {2, 4, 2, 25, 511, 32}, {1, 6, 2, 13, 256, 64},
      {1, 1, 1, 12, 512, 64}, {2, 2, 1, 50, 77, 80},  {1, 2, 2, 61, 300, 128},
      {1, 1, 1, 2, 33, 4096}, {1, 1, 1, 50, 288, 65},
  };
  for (const Shape& shape : shapes) {
    for (DType dtype : kDTypes) check_case({.shape = shape, .dtype = dtype});
  }
}

TEST_CASE("every mask agrees with double precision for every score function", "[numbers]") {
  for (const std::string_view mask : kMaskNames) {
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid,
                                      ScoreFunction::linear_elu1, ScoreFunction::linear_relu}) {
      const bool finite_bias = mask == "dense_float" || mask.ends_with("_bias");
      if (is_linear(score) && finite_bias) continue;
      check_case({.shape = {2, 4, 2, 29, 301, 8},
                  .dtype = score == ScoreFunction::sigmoid ? DType::f16 : DType::bf16,
                  .score = score,
                  .mask = mask});
    }
  }
}

TEST_CASE("capped logits and sinks agree with double precision under every mask", "[numbers]") {
  for (const std::string_view mask : kMaskNames) {
    for (const auto& [score, sinks] : {std::pair{ScoreFunction::softcap(2), "none"},
                                       {ScoreFunction::softcap(30), "query"},
                                       {ScoreFunction::softmax, "head"},
                                       {ScoreFunction::softmax, "query"}}) {
      check_case({.shape = {2, 6, 2, 29, 301, 8},
                  .dtype = DType::bf16,
                  .score = score,
                  .mask = mask,
                  .sinks = sinks});
    }
  }
}

TEST_CASE("scales a head agree with double precision, capped or not", "[numbers]") {
  for (const DType dtype : kDTypes) {
    for (const ScoreFunction score :
         {ScoreFunction::softmax, ScoreFunction::softcap(3), ScoreFunction::sigmoid}) {
      check_case({.shape = {2, 6, 2, 40, 700, 16},
                  .dtype = dtype,
                  .score = score,
                  .mask = "alibi_bias",
                  .sinks = is_softmax(score) ? "head" : "none",
                  .own_scales = true});
      check_case(
          {.shape = {1, 4, 2, 140, 1031, 64}, .dtype = dtype, .score = score, .own_scales = true});
    }
  }
}

TEST_CASE("capped logits and sinks of every size agree with double precision", "[numbers]") {
  for (const DType dtype : kDTypes) {
    for (const double cap : {1e-3, 1.0, 50.0, 1e6}) {
      for (const double amplitude : {1e-3, 1.0, 6.0, 35.0}) {
        check_case({.shape = {1, 2, 1, 40, 1031, 64},
                    .dtype = dtype,
                    .score = ScoreFunction::softcap(cap),
                    .sinks = "query",
                    .amplitude = amplitude,
                    .scale = amplitude > 1 ? 1.0 : 0.0});
      }
    }
  }
  check_case({.shape = {1, 6, 1, 90, 1500, 8}, .sinks = "head", .amplitude = 6, .scale = 1});
  check_case({.shape = {1, 1, 1, 40, 600, 8}, .mask = "masked_rows", .sinks = "far"});
}

TEST_CASE("every mask and dtype agrees with double precision across many key blocks", "[numbers]") {
  for (const std::string_view mask : kMaskNames) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check_case({.shape = {1, 1, 1, 40, 1031, 12}, .dtype = dtype, .mask = mask});
    }
  }
}

TEST_CASE("masks of tokens agree with double precision for every score function", "[numbers]") {
  for (const std::string_view mask : kSquareMaskNames) {
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid,
                                      ScoreFunction::linear_elu1, ScoreFunction::linear_relu}) {
      check_case({.shape = {2, 4, 2, 301, 301, 8}, .score = score, .mask = mask});
    }
    check_case({.shape = {1, 2, 1, 523, 523, 12}, .dtype = DType::bf16, .mask = mask});
  }
  for (const DType dtype : kDTypes) {
    check_case({.shape = {2, 4, 2, 301, 301, 8}, .dtype = dtype, .mask = "grid_bias"});
  }
}

TEST_CASE("tiny and huge logits agree with double precision", "[numbers]") {
  for (const DType dtype : kDTypes) {
    // Logits of about ±1e4, where almost every weight is 0 or 1, and of about 1e-8.
    check_case({.shape = {1, 1, 1, 30, 600, 64}, .dtype = dtype, .amplitude = 35, .scale = 1});
    check_case({.shape = {1, 1, 1, 30, 600, 64}, .dtype = dtype, .amplitude = 1e-3});
    // In between: rows whose reference moves while they are summed.
    check_case({.shape = {1, 1, 1, 90, 1500, 8}, .dtype = dtype, .amplitude = 6, .scale = 1});
    check_case({.shape = {1, 1, 1, 20, 600, 8},
                .dtype = dtype,
                .score = ScoreFunction::sigmoid,
                .amplitude = 30,
                .scale = 1});
  }
}

TEST_CASE("products of one sign are within the bound that is proven of their sums", "[numbers]") {
  // A large channel that all queries and keys share, alone and beside others of one sign.
  for (const int64_t d : {24, 64, 65, 128}) {
    for (const DType dtype : kDTypes) {
      for (const float common : {30.0f, 100.0f}) {
        AttentionCase description{
            .shape = {1, 1, 1, 30, 600, d}, .dtype = dtype, .common_channel = common};
        check_case(description);
        description.q_shift = description.k_shift = 5;
        check_case(description);
      }
    }
  }
  check_case({.shape = {1, 2, 1, 20, 300, 64},
              .dtype = DType::bf16,
              .mask = "dense_float",
              .common_channel = 100});
}

TEST_CASE("linear scores of features near 0 agree with double precision", "[numbers]") {
  for (const auto& [q, k] : {std::pair{-100.0f, 0.0f},
                             {-300.0f, 0.0f},
                             {0.0f, -100.0f},
                             {-30.0f, -30.0f},
                             {-100.0f, -100.0f},
                             {-300.0f, -300.0f}}) {
    for (const std::string_view mask : {"none", "causal", "masked_rows"}) {
      for (const bool mixed : {false, true}) {
        INFO("shifts " << q << " " << k << " mask " << mask << " mixed " << mixed);
        check_case({.shape = {1, 2, 1, 30, 600, 16},
                    .dtype = DType::f32,
                    .score = ScoreFunction::linear_elu1,
                    .mask = mask,
                    .q_shift = q,
                    .k_shift = k,
                    .mixed_rows = mixed});
      }
    }
  }
}

TEST_CASE("what tensor cores cut off is allowed of real devices that have them alone") {
  std::vector<NamedBackend> backends = all_backends();
  NamedBackend& last = backends.back();
  const AttentionCase bf16{.shape = {1, 1, 1, 1, 9, 64}, .dtype = DType::bf16};
  const AttentionCase f32{.shape = {1, 1, 1, 1, 9, 64}};
  const Oracle::Row row = Oracle(bf16).row(0, 0, 0);
  last.on_device = false;
  CHECK(logit_error_of(last, bf16, row) == row.logit_error);
  CHECK(lse_error_of(last, bf16, row) == 0);
  last.on_device = true;
  const bool has_them = last.backend->name() != "cuda-cublas";
  const double cut = has_them ? 6 * 0x1p-23 * row.magnitude : 0;
  CHECK(logit_error_of(last, bf16, row) == Approx(std::max(cut, row.logit_error)));
  CHECK(lse_error_of(last, bf16, row) == Approx(cut));
  CHECK(lse_error_of(last, f32, row) == 0);
}

TEST_CASE("this machine's devices are among the backends of the suite") {
  std::string reason;
  const auto backends = device_backends(reason);
  if (backends.empty() && !only_devices_are_tested()) {
    skip_test("no device to test: " + reason);
    return;
  }
  INFO(reason);
  REQUIRE_FALSE(backends.empty());
  CHECK(backends.back().backend->name() == "cuda-cublas");
  for (const NamedBackend& named : backends) {
    CHECK(named.name == named.backend->name() + " on a device");
    WARN(named.backend->name() << ": " << named.backend->description());
  }
}

TEST_CASE("rows without any difference are uniform") {
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const Oracle oracle({.shape = {1, 1, 1, 5, 700, 16}, .dtype = DType::bf16, .amplitude = 0});
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile tile(5, 700, 256, Encoding::f32);
    const auto norms = run.emit_panel(iota(5), {0, 700}, tile);
    for (int64_t row = 0; row < 5; ++row) {
      CHECK(norms[static_cast<size_t>(row)].lse() == Approx(std::log(700.0)).epsilon(1e-14));
      for (int64_t col = 0; col < 700; ++col) CHECK(tile.value(row, col) == tile.value(0, 0));
      CHECK(tile.value(row, 0) == Approx(1 / 700.0).epsilon(1e-7));
    }
  }
}

TEST_CASE("logits that float32 cannot resolve are refused, not spread") {
  const Shape shape{1, 1, 1, 5, 300, 16};
  const AttentionCase cases[] = {{.shape = shape, .amplitude = 1e4, .scale = 1},
                                 {.shape = shape, .amplitude = 1e18, .scale = 1},
                                 {.shape = shape, .mask = "lowest_bias"}};
  for (const NamedBackend& named : all_backends()) {
    if (named.name == "reference") continue;
    for (const AttentionCase& description : cases) {
      const Oracle oracle(description);
      INFO(oracle.text() << ", backend " << named.name);
      const HeadRun run(oracle, *named.backend, 0, 0);
      try {
        run.norms(iota(5));
        FAIL_CHECK("no error");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::value);
        CHECK(std::string(error.what()).find("case: head 0, query ") == 0);
      }
    }
  }
}

TEST_CASE("linear scores have no logits") {
  const Oracle oracle({.shape = {1, 1, 1, 2, 9, 4}, .score = ScoreFunction::linear_relu});
  for (const NamedBackend& named : all_backends()) {
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile tile(2, 9, 9, Encoding::f32);
    CHECK_THROWS_AS(run.emit(iota(2), {}, {0, 9}, Quantity::logits, tile), Error);
  }
}

}  // namespace attnscope::test
