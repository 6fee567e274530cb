// The checks of a device when it is first used, and who computes where it fails them; cuBLAS, and
// the shapes that it gets. On the emulation.
#include <cmath>
#include <cstring>

#include "core/reduce/reduction_stream.h"
#include "core/stream/device_facet.h"
#include "core/stream/value_panels.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

struct FirstUse {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;

  explicit FirstUse(int major = 8, int devices = 1, const std::function<void()>& prepare = {}) {
    emulation::reset();
    emulation::Device device;
    device.major = major;
    emulation::set_devices(std::vector<emulation::Device>(static_cast<size_t>(devices), device));
    if (prepare) prepare();
    CudaModuleOptions options;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
  }
};

AttentionCase case_of(DType dtype) {
  return {.shape = {1, 2, 1, 200, 700, 64}, .dtype = dtype, .value_width = 40};
}

void check_weights(const Oracle& oracle, const TileBackend& backend) {
  GuardedTile tile(200, 700, 700, Encoding::f32);
  HeadRun(oracle, backend, 0, 0).emit_panel(iota(200), {0, 700}, tile);
  for (int64_t i = 0; i < 200; i += 7) {
    const Oracle::Row row = oracle.row(0, 0, i);
    for (size_t j = 0; j < 700; ++j) {
      REQUIRE(std::fabs(tile.value(i, static_cast<int64_t>(j)) - row.weights[j]) <=
              1e-3 / 700 + 2e-4 * row.weights[j]);
    }
  }
}

void check_outputs(const Oracle& oracle, const TileBackend& backend) {
  std::vector<float> outputs(200 * 40);
  HeadRun(oracle, backend, 0, 0).outputs(iota(200), {outputs.data(), 40});
  for (int64_t i = 0; i < 200; i += 7) {
    const Oracle::Row row = oracle.row(0, 0, i);
    for (int64_t c = 0; c < 40; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < 700; ++j) {
        sum += row.weights[static_cast<size_t>(j)] * oracle.value(0, 0, j, c);
      }
      REQUIRE(std::fabs(outputs[static_cast<size_t>(i * 40 + c)] - sum) <= 2e-4);
    }
  }
}

/// Of column masses.
void check_columns(const Oracle& oracle, const TileBackend& backend) {
  ReductionRequest request;
  request.rows = request.columns = true;
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals& head_totals) override { totals = head_totals; }
    HeadTotals totals;
  } sink;
  const ReductionJob job{{&oracle.problem(), 0, 0, {0, 200}, {}, {0, 700}}, request};
  MemoryBudget budget(int64_t{1} << 30);
  ReductionStream stream(backend, budget);
  REQUIRE(stream.run({&job, 1}, plan_reductions({&job, 1}, backend, int64_t{1} << 30, 1), sink));
  std::vector<double> expected(700);
  for (int64_t i = 0; i < 200; ++i) {
    const Oracle::Row row = oracle.row(0, 0, i);
    for (size_t j = 0; j < 700; ++j) expected[j] += row.weights[j] / 200;
  }
  const auto columns = sink.totals.column_mass();
  for (size_t j = 0; j < 700; ++j) REQUIRE(columns[j] == Approx(expected[j]).epsilon(1e-3));
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "cuBLAS is loaded when a product needs it, and what it would compute is the CPU's without") {
  const FirstUse first;
  CHECK(emulation::counters().cublas_handles == 0);
  CHECK(emulation::counters().gemms == 0);
  const Oracle halves(case_of(DType::f16));
  check_weights(halves, *first.backend);
  CHECK(emulation::counters().cublas_handles == 0);
  const Oracle floats(case_of(DType::f32));
  check_weights(floats, *first.backend);
  CHECK(emulation::counters().cublas_handles > 0);
  CHECK(first.notices.empty());

  const FirstUse without(8, 1, [] { emulation::hide_cublas(true); });
  CHECK(without.backend->name() == "cuda-mma");
  check_weights(halves, *without.backend);
  CHECK(without.notices.empty());
  check_weights(floats, *without.backend);
  check_weights(floats, *without.backend);
  REQUIRE(without.notices.size() == 1);
  CHECK(without.notices[0].find("cuda: Emulated device is not used for entries of f32 tensors: "
                                "cuda: cuBLAS cannot be used: ") == 0);
  check_outputs(halves, *without.backend);
  REQUIRE(without.notices.size() == 2);
  CHECK(holds(without.notices[1], "not used for outputs of f16 tensors"));
  // A device that has nothing else is of no use.
  emulation::reset();
  emulation::Device old;
  old.major = 7;
  old.minor = 5;
  emulation::set_devices({old});
  emulation::hide_cublas(true);
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  CHECK_THROWS_WITH(make_device_backend(options),
                    Catch::StartsWith("cuda: cuBLAS cannot be used: "));
  emulation::reset();
}

TEST_CASE("what a device computes wrongly when it is first used is computed on the CPU") {
  const Oracle halves(case_of(DType::f16));
  const Oracle floats(case_of(DType::f32));
  const FirstUse sums(8, 1, [] { emulation::spoil_sums(true); });
  CHECK(sums.notices.empty());
  const uint64_t reductions = emulation::launches_of("reduce_tiles");
  CHECK(reductions == 0);
  check_columns(halves, *sums.backend);
  check_columns(halves, *sums.backend);
  REQUIRE(sums.notices.size() == 1);
  CHECK(holds(sums.notices[0], "cuda: Emulated device is not used for reductions of f16 tensors"));
  INFO(sums.notices[0]);
  CHECK(holds(sums.notices[0], "the mass of column 0 is "));
  CHECK(emulation::launches_of("reduce_tiles") == 1);
  // All else is right.
  check_weights(halves, *sums.backend);
  CHECK(sums.notices.size() == 1);

  const FirstUse gemms(8, 2, [] { emulation::spoil_gemms(true); });
  check_weights(floats, *gemms.backend);
  // Both devices were tried.
  REQUIRE(gemms.notices.size() == 2);
  CHECK(holds(gemms.notices[1], "not used for entries of f32 tensors"));
  check_outputs(halves, *gemms.backend);
  REQUIRE(gemms.notices.size() == 3);
  CHECK(holds(gemms.notices[2], "not used for outputs of f16 tensors"));
  CHECK(holds(gemms.notices[2], "output (0, 0) is "));
  emulation::reset();
}

TEST_CASE("texels that a device makes wrongly are left to the caller") {
  const Oracle oracle(case_of(DType::bf16));
  for (const bool spoilt : {false, true}) {
    const FirstUse first(9, 1, [] {});
    // Of warpgroups only entries and row sums are made, which were right when it was opened.
    emulation::spoil_warpgroups(spoilt);
    const auto head = first.backend->bind(oracle.problem(), 0, 0);
    const TexelPooler* const pooler = first.backend->device()->pooler(*head);
    REQUIRE(pooler != nullptr);
    const std::vector<std::byte> rows = oracle.query_rows(0, 0, iota(200));
    const std::vector<int64_t> index = iota(200);
    std::vector<RowNorm> norms(200);
    head->row_norms({rows.data(), index}, norms, {});
    std::vector<float> max(50 * 175), mean(max.size());
    CHECK(pooler->pool({rows.data(), index}, norms, {Quantity::weights, 2, {0, 700}},
                       {max.data(), mean.data(), 175}) == !spoilt);
    CHECK(first.notices.size() == (spoilt ? 1 : 0));
  }
  emulation::reset();
}

TEST_CASE("bits do not depend on how many rows a call has, whatever cuBLAS makes of shapes") {
  AttentionCase masked = case_of(DType::f32);
  masked.mask = "dense_float";
  for (const AttentionCase& description : {case_of(DType::f32), case_of(DType::f16), masked}) {
    const Oracle oracle(description);
    INFO(oracle.text());
    const FirstUse first(8, 1, [] { emulation::order_gemms_by_shape(true); });
    const HeadRun run(oracle, *first.backend, 0, 0);
    std::vector<float> whole(200 * 40), part(40);
    const auto norms = run.outputs(iota(200), {whole.data(), 40});
    GuardedTile all(200, 700, 700, Encoding::f32), one(1, 700, 700, Encoding::f32);
    run.emit_panel(iota(200), {0, 700}, all);
    for (const int64_t row : {0, 127, 128, 199}) {
      const auto norm = run.outputs({row}, {part.data(), 40});
      CHECK(norm[0].sum == norms[static_cast<size_t>(row)].sum);
      CHECK(std::memcmp(part.data(), whole.data() + row * 40, 40 * sizeof(float)) == 0);
      run.emit_panel({row}, {0, 700}, one);
      CHECK(one.row_bytes(0) == all.row_bytes(row));
    }
    CHECK(first.notices.empty());
  }
  emulation::reset();
}

}  // namespace attnscope::test
