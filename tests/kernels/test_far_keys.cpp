// Keys far below all others of their row, by a finite bias or by their product with the query, on
// every backend and every way to a row's weights, against the reference backend. Tolerances are
// those of ordinary rows: what cannot count may not cost the others anything.
#include <cfloat>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "core/reduce/head_totals.h"
#include "core/reduce/reduction_stream.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// torch.finfo(torch.bfloat16).min.
constexpr float kLowestBfloat = -0x1.fep127f;
constexpr float kFarBiases[] = {-1e3f,           -1e4f,         -65504.0f, -1e5f,
                                -1e9f,           -1e17f,        -1e20f,    -1e30f,
                                -0.7f * FLT_MAX, kLowestBfloat, -FLT_MAX,  -kInfinity};
constexpr double kFarProducts[] = {-1e8, -1e12, -1e17, -1e20, -1e30, -1e38};
/// Of kKeys keys: first, last and in the middle, a few and whole blocks of 256.
constexpr int64_t kKeys = 601;
constexpr IndexRange kFarRanges[] = {{0, 100}, {0, 512}, {256, 512}, {400, 601}, {512, 601}};

const std::vector<NamedBackend>& backends() {
  static const std::vector<NamedBackend> all = all_backends();
  return all;
}

const TileBackend& reference() {
  static const std::unique_ptr<TileBackend> backend = make_reference_backend(1);
  return *backend;
}

/// Keeps every row's reductions, and the column masses.
class RowSink : public ReductionSink {
 public:
  struct Row {
    RowReduction values;
    std::vector<double> masses;
  };

  void panel(int64_t, int64_t first, const PanelReduction& panel) override {
    const std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < panel.num_rows(); ++i) {
      const double* masses = panel.masses(i);
      rows[first + i] = {panel.row(i), {masses, masses + panel.segments().count()}};
    }
  }
  void head(int64_t, const HeadTotals& totals) override { columns = totals.column_mass(); }

  std::map<int64_t, Row> rows;
  std::vector<double> columns;

 private:
  std::mutex mutex_;
};

/// Of a channel of q and one of k that count, about.
double largest_product(const AttentionCase& c) {
  return (3 * c.amplitude + std::fabs(double{c.q_shift})) *
         (3 * c.amplitude + std::fabs(double{c.k_shift}));
}

/// Everything that a backend makes of a case's first head.
struct Results {
  /// Of a weight: what float32 loses of the logits of the keys that count.
  double relative;
  GuardedTile panel, direct;
  std::vector<RowNorm> panel_norms, norms, output_norms;
  std::vector<float> outputs;
  RowSink reductions;

  Results(const Oracle& oracle, const TileBackend& backend)
      : relative(1e-4 + 0x1p-23 * oracle.problem().scale(0) *
                            static_cast<double>(oracle.problem().head_dim()) *
                            largest_product(oracle.description())),
        panel(oracle.problem().num_queries(), oracle.problem().num_keys(), 250, Encoding::f32),
        direct(oracle.problem().num_queries(), oracle.problem().num_keys(), 250, Encoding::f32) {
    const AttentionProblem& problem = oracle.problem();
    const std::vector<int64_t> rows = iota(problem.num_queries());
    const IndexRange keys{0, problem.num_keys()};
    const HeadRun run(oracle, backend, 0, 0);
    panel_norms = run.emit_panel(rows, keys, panel);
    norms = run.norms(rows);
    run.emit(rows, norms, keys, Quantity::weights, direct);
    const int64_t width = oracle.description().value_width;
    outputs.resize(rows.size() * static_cast<size_t>(width));
    output_norms = run.outputs(rows, {outputs.data(), width});
    ReductionRequest request;
    request.rows = request.entropy = request.max_keys = request.columns = true;
    const HeadTask task{&problem, 0, 0, {0, problem.num_queries()}, {}, keys};
    const ReductionJob job{task, request};
    MemoryBudget budget(int64_t{1} << 30);
    const ReductionPlan plan = plan_reductions({&job, 1}, backend, budget.limit(), 1);
    REQUIRE(ReductionStream(backend, budget).run({&job, 1}, plan, reductions));
  }
};

/// The number that is furthest outside its tolerance.
class Worst {
 public:
  void take(double got, double expected, double tolerance, const char* what, int64_t row,
            int64_t col = 0) {
    const double error = std::fabs(got - expected) / tolerance;
    if (got == expected || error <= excess_) return;
    excess_ = std::isnan(error) ? 1e300 : error;
    text_ = std::string(what) + " (" + std::to_string(row) + ", " + std::to_string(col) +
            "): got " + std::to_string(got) + ", expected " + std::to_string(expected);
  }
  void check() const {
    INFO(text_);
    CHECK(excess_ <= 1);
  }

 private:
  double excess_ = 0;
  std::string text_;
};

void compare_weights(const GuardedTile& got, const Results& expected, Worst& worst) {
  for (size_t i = 0; i < expected.norms.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    double sum = 0;
    for (int64_t key = 0; key < kKeys; ++key) {
      const double weight = expected.panel.value(row, key);
      sum += got.value(row, key);
      worst.take(got.value(row, key), weight, 1e-3 / double{kKeys} + expected.relative * weight,
                 "weight", row, key);
    }
    worst.take(sum, 1, 1e-5 + 0x1p-23 * std::fabs(expected.norms[i].lse()), "row sum", row);
  }
}

void compare_norms(const std::vector<RowNorm>& got, const Results& expected, Worst& worst) {
  REQUIRE(got.size() == expected.norms.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double lse = expected.norms[i].lse();
    worst.take(got[i].lse(), lse, 2e-5 + 2e-6 * std::fabs(lse), "lse", static_cast<int64_t>(i));
  }
}

void compare_reductions(const RowSink& got, const RowSink& expected, double relative,
                        Worst& worst) {
  REQUIRE(got.rows.size() == expected.rows.size());
  for (const auto& [row, e] : expected.rows) {
    const RowSink::Row& g = got.rows.at(row);
    CHECK_FALSE(g.values.masked);
    worst.take(g.values.max_weight, e.values.max_weight, relative * e.values.max_weight, "max",
               row);
    worst.take(g.values.entropy, e.values.entropy, 2e-4 + 2 * relative * (1 + e.values.entropy),
               "entropy", row);
    for (size_t s = 0; s < e.masses.size(); ++s) {
      worst.take(g.masses[s], e.masses[s], 1e-5 + relative * e.masses[s], "mass", row,
                 static_cast<int64_t>(s));
    }
  }
  REQUIRE(got.columns.size() == expected.columns.size());
  for (size_t j = 0; j < got.columns.size(); ++j) {
    worst.take(got.columns[j], expected.columns[j],
               1e-3 / double{kKeys} + relative * expected.columns[j], "column", 0,
               static_cast<int64_t>(j));
  }
}

/// The first head of a softmax case, whose rows all have a key that counts, on every backend.
void check_case(const AttentionCase& description) {
  const Oracle oracle(description);
  const Results expected(oracle, reference());
  for (const NamedBackend& named : backends()) {
    if (named.is_twin_for(description.dtype)) continue;
    INFO(oracle.text() << ", backend " << named.name);
    try {
      const Results got(oracle, *named.backend);
      Worst worst;
      compare_weights(got.panel, expected, worst);
      compare_weights(got.direct, expected, worst);
      compare_norms(got.panel_norms, expected, worst);
      compare_norms(got.norms, expected, worst);
      compare_norms(got.output_norms, expected, worst);
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        worst.take(double{got.outputs[i]}, double{expected.outputs[i]}, 5 * expected.relative,
                   "output", static_cast<int64_t>(i) / description.value_width,
                   static_cast<int64_t>(i) % description.value_width);
      }
      compare_reductions(got.reductions, expected.reductions, expected.relative, worst);
      worst.check();
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

AttentionCase far_case(DType dtype, const FarKeys& far) {
  return {.shape = {1, 1, 1, 20, kKeys, 8}, .dtype = dtype, .value_width = 5, .far = far};
}

}  // namespace

TEST_CASE("keys with any bias far below the others' weigh nothing and cost nothing", "[numbers]") {
  for (const float bias : kFarBiases) {
    for (const IndexRange& keys : kFarRanges) check_case(far_case(DType::bf16, {keys, bias}));
    check_case(far_case(DType::f32, {{0, 300}, bias, true}));
    check_case(far_case(DType::f16, {{0, 590}, bias, true}));
  }
}

TEST_CASE("keys with any product far below the others' weigh nothing and cost nothing",
          "[numbers]") {
  for (const double product : kFarProducts) {
    for (const IndexRange& keys : kFarRanges) {
      check_case(far_case(DType::f32, {.keys = keys, .product = product}));
    }
    // One key alone; where the scale takes the logit beyond float32; beside masks.
    AttentionCase single = far_case(DType::bf16, {.keys = {300, 301}, .product = product});
    check_case(single);
    single.scale = 5;
    single.amplitude = 0.5;
    check_case(single);
    single.mask = "keys";
    check_case(single);
    check_case(far_case(DType::f32, {{256, 270}, -1e30f, false, product}));
  }
}

TEST_CASE("rows whose reference lies far from 0 are right after keys far below") {
  for (const float bias : {-1e9f, -1e17f, -FLT_MAX}) {
    for (const double scale : {30.0, 300.0}) {
      AttentionCase description = far_case(DType::bf16, {{0, 512}, bias});
      description.amplitude = 2;
      description.scale = scale;
      check_case(description);
      // All logits far below 0, but not far enough.
      description.amplitude = 0.5;
      description.q_shift = -3;
      description.k_shift = 3;
      check_case(description);
    }
  }
}

TEST_CASE("a sigmoid knows biases and products far below") {
  for (const float bias : kFarBiases) {
    for (const double product : {0.0, -1e17, -1e38}) {
      const bool by_row = bias < -1e5f;
      AttentionCase description = far_case(DType::f32, {{200, 300}, bias, by_row, product});
      description.score = ScoreFunction::sigmoid;
      const Oracle oracle(description);
      for (const NamedBackend& named : backends()) {
        if (named.bf16_dots) continue;
        INFO(oracle.text() << ", backend " << named.name);
        const HeadRun run(oracle, *named.backend, 0, 0);
        GuardedTile tile(20, kKeys, 250, Encoding::f32);
        run.emit(iota(20), {}, {0, kKeys}, Quantity::weights, tile);
        Worst worst;
        for (int64_t i = 0; i < 20; ++i) {
          const Oracle::Row row = oracle.row(0, 0, i);
          for (int64_t j = 0; j < kKeys; ++j) {
            const double weight = row.weights[static_cast<size_t>(j)];
            worst.take(tile.value(i, j), weight, 1e-6 + 1e-4 * weight, "weight", i, j);
          }
        }
        worst.check();
      }
    }
  }
}

TEST_CASE("a row of nothing but far biases is right, or masked from -2^22 on") {
  for (const float bias : {-1e3f, -1e5f, -2.5e6f, -0x1p22f, -1e9f, -1e17f, -1e30f, -FLT_MAX}) {
    const Oracle oracle(far_case(DType::bf16, {{0, kKeys}, bias}));
    for (const NamedBackend& named : backends()) {
      INFO(oracle.text() << ", backend " << named.name);
      const HeadRun run(oracle, *named.backend, 0, 0);
      GuardedTile tile(20, kKeys, 250, Encoding::f32);
      const std::vector<RowNorm> norms = run.emit_panel(iota(20), {0, kKeys}, tile);
      const bool masked = bias <= -0x1p22f;
      for (int64_t row = 0; row < 20; ++row) {
        double sum = 0;
        for (int64_t key = 0; key < kKeys; ++key) sum += tile.value(row, key);
        CHECK(std::fabs(sum - (masked ? 0 : 1)) <= (masked ? 0 : 1e-5 + 0x1p-23 * std::fabs(bias)));
        CHECK((norms[static_cast<size_t>(row)].sum == 0) == masked);
      }
      GuardedTile logits(20, kKeys, 250, Encoding::f32);
      run.emit(iota(20), {}, {0, kKeys}, Quantity::logits, logits);
      CHECK(std::isfinite(logits.value(3, 500)) != masked);
    }
  }
}

TEST_CASE("a product beyond what float32 tells apart is refused where it is a row's largest") {
  for (const double product : {1e8, 1e12, 1e17, 1e20, 1e30, 1e38}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Oracle oracle(far_case(dtype, {.keys = {300, 301}, .product = product}));
      for (const NamedBackend& named : backends()) {
        if (named.name == "reference" || named.is_twin_for(dtype)) continue;
        INFO(oracle.text() << ", backend " << named.name);
        const HeadRun run(oracle, *named.backend, 0, 0);
        GuardedTile tile(20, kKeys, 250, Encoding::f32);
        CHECK_THROWS_AS(run.norms(iota(20)), Error);
        CHECK_THROWS_AS(run.emit_panel(iota(20), {0, kKeys}, tile), Error);
        std::vector<float> outputs(20 * 5);
        CHECK_THROWS_AS(run.outputs(iota(20), {outputs.data(), 5}), Error);
      }
    }
  }
}

}  // namespace attnscope::test
