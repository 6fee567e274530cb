// Row sums of whole heads: how many launches they take, and that no bit depends on the cut. On the
// emulation.
#include <cmath>
#include <cstring>

#include "core/stream/device_facet.h"
#include "core/stream/norm_sink.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/key_memory.h"
#include "kernels/cuda/kernel/tile_args.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

struct OneDevice {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;

  explicit OneDevice(int major, int64_t vram_bytes = 0) {
    emulation::reset();
    emulation::Device device;
    device.major = major;
    device.shared_per_block_optin = major == 9 ? 227 << 10 : 163 << 10;
    device.shared_per_multiprocessor = major == 9 ? 228 << 10 : 164 << 10;
    emulation::set_devices({device});
    CudaModuleOptions options;
    options.vram_bytes = vram_bytes;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
  }
};

/// The norms of all rows as a stream of norms alone yields them.
std::vector<RowNorm> streamed_norms(const AttentionProblem& problem, const TileBackend& backend,
                                    int64_t budget_bytes = int64_t{1} << 30) {
  const int64_t rows = problem.num_queries();
  const HeadTask task{&problem, 0, 0, {0, rows}, {}, {0, problem.num_keys()}};
  const TileRequest request{.entries = false};
  std::vector<RowNorm> norms(static_cast<size_t>(rows));
  NormSink sink(request, norms);
  MemoryBudget budget(budget_bytes);
  const TilePlan plan = plan_tiles({&task, 1}, request, backend, budget_bytes);
  REQUIRE(StreamingEngine(backend, budget).run({&task, 1}, plan, sink));
  return norms;
}

bool same_bits(const std::vector<RowNorm>& a, const std::vector<RowNorm>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
           return std::memcmp(&x.sum, &y.sum, sizeof(double)) == 0 && x.exponent == y.exponent;
         });
}

/// Zeros of any shape that take no memory.
class ZeroTensor : public TensorSource {
 public:
  ZeroTensor(DType dtype, std::vector<int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {}
  DType dtype() const override { return dtype_; }
  std::span<const int64_t> shape() const override { return shape_; }
  const std::string& name() const override { return name_; }
  void read(std::span<const int64_t>, std::span<const int64_t> count,
            std::byte* destination) const override {
    int64_t bytes = dtype_bytes(dtype_);
    for (const int64_t extent : count) bytes *= extent;
    std::memset(destination, 0, static_cast<size_t>(bytes));
  }

 private:
  const std::string name_ = "zeros";
  const DType dtype_;
  const std::vector<int64_t> shape_;
};

const AttentionCase kHead{.shape = {1, 1, 1, 2300, 1100, 40}, .dtype = DType::f16};

}  // namespace

TEST_CASE("the row sums of a whole head are one launch, whose values are the definition's") {
  const Oracle oracle(kHead);
  for (const int major : {8, 9}) {
    const OneDevice device(major);
    INFO("compute capability " << major);
    const uint64_t sums = emulation::launches_of("sum_rows");
    const uint64_t combined = emulation::launches_of("combine_rows");
    const std::vector<RowNorm> norms = streamed_norms(oracle.problem(), *device.backend);
    CHECK(emulation::launches_of("sum_rows") - sums == 1);
    CHECK(emulation::launches_of("combine_rows") - combined == 1);
    for (int64_t row = 0; row < 2300; row += 19) {
      const Oracle::Row expected = oracle.row(0, 0, row);
      const double lse = norms[static_cast<size_t>(row)].lse();
      REQUIRE(std::fabs(lse - expected.lse) <= 1e-5 + expected.logit_error);
    }
    // Rows that chunks are made of, and rows by themselves.
    const HeadRun run(oracle, *device.backend, 0, 0);
    std::vector<RowNorm> in_panels;
    for (int64_t first = 0; first < 2300; first += 384) {
      std::vector<int64_t> rows;
      for (int64_t i = first; i < std::min<int64_t>(first + 384, 2300); ++i) rows.push_back(i);
      GuardedTile tile(std::ssize(rows), 4, 4, Encoding::f32);
      for (const RowNorm& norm : run.emit_panel(rows, {0, 4}, tile)) in_panels.push_back(norm);
    }
    CHECK(same_bits(norms, in_panels));
    CHECK(same_bits({norms[2299]}, run.norms({2299})));
    CHECK(device.notices.empty());
  }
}

TEST_CASE("row sums of whole heads are halved where memory is short, and stay the same bits") {
  const Oracle oracle(kHead);
  const std::vector<RowNorm> expected = streamed_norms(oracle.problem(), *OneDevice(8).backend);
  // Of the device's memory: keys and two thousand rows do not fit this.
  const OneDevice small(8, int64_t{700} << 10);
  const uint64_t sums = emulation::launches_of("sum_rows");
  CHECK(same_bits(streamed_norms(oracle.problem(), *small.backend), expected));
  CHECK(emulation::launches_of("sum_rows") - sums > 1);
  CHECK_FALSE(small.notices.empty());
  // Of the host's: panels are halved.
  const OneDevice device(8);
  const HeadTask task{&oracle.problem(), 0, 0, {0, 2300}, {}, {0, 1100}};
  const TileRequest request{.entries = false};
  CHECK(plan_tiles({&task, 1}, request, *device.backend, int64_t{1} << 30).panel_rows == 2300);
  const int64_t least =
      plan_tiles({&task, 1}, request, *device.backend, int64_t{1} << 30, 1).bytes_total - 1000;
  CHECK(plan_tiles({&task, 1}, request, *device.backend, least, 1).panel_rows < 2300);
  CHECK(same_bits(streamed_norms(oracle.problem(), *device.backend, least), expected));
}

TEST_CASE("the memory of a head's keys is the next one's") {
  const Oracle oracle({.shape = {1, 6, 1, 200, 700, 64}, .dtype = DType::bf16});
  const OneDevice device(8);
  const auto use = [&](int64_t head) {
    HeadRun(oracle, *device.backend, 0, head).norms(iota(200));
  };
  use(0);
  const size_t allocations = emulation::counters().device_allocations;
  const size_t bytes = emulation::counters().device_bytes;
  // Nothing is allocated for the others, or the first of these calls would fail.
  emulation::fail(emulation::Call::kMalloc, 1, cudaErrorUnknown);
  for (int64_t head = 1; head < 6; ++head) use(head);
  CHECK(emulation::counters().device_allocations == allocations);
  CHECK(emulation::counters().device_bytes == bytes);
  CHECK(device.notices.empty());
  emulation::reset();

  cuda::Device memory(0, int64_t{8} << 20, 0);
  cuda::KeyMemory keys(memory);
  const auto size_of = [&](int64_t size) { return keys.take(size)->bytes(); };
  CHECK(size_of(1000) == 1000);
  CHECK(size_of(600) == 1000);
  CHECK(size_of(500) == 500);
  CHECK(size_of(1001) == 1001);
  // What nobody uses makes way.
  CHECK(size_of(int64_t{8} << 20) == int64_t{8} << 20);
  CHECK(size_of(1000) == 1000);
  CHECK(memory.used_bytes() == 1000);
  const cuda::KeyMemory::Held used = keys.take(int64_t{7} << 20);
  CHECK_THROWS_AS(keys.take(int64_t{2} << 20), cuda::OutOfDeviceMemory);
}

TEST_CASE("how many rows a device sums at once follows from the memory of their sums") {
  const OneDevice device(9);
  const auto rows_of = [&](const AttentionProblem& problem) {
    return device.backend->device()->norm_panel_rows(problem);
  };
  const auto problem_of = [](int64_t tokens, int64_t width, DType dtype, Mask mask = {}) {
    AttentionProblem::Parts parts;
    const std::vector<int64_t> shape{1, 1, tokens, width};
    const auto tensor = [&] {
      return HeadTensor(std::make_shared<ZeroTensor>(dtype, shape), Layout::bhsd);
    };
    parts.q = tensor();
    parts.k = tensor();
    parts.mask = std::move(mask);
    parts.name = "long";
    return AttentionProblem::make(std::move(parts));
  };
  const int64_t short_rows = rows_of(problem_of(17776, 64, DType::bf16));
  CHECK(short_rows > 17776);
  const int64_t long_rows = rows_of(problem_of(118800, 128, DType::bf16));
  CHECK(long_rows > 12000);
  CHECK(long_rows < 18000);
  CHECK(long_rows % (2 * cuda::kTileRows) == 0);
  CHECK(rows_of(problem_of(10000000, 128, DType::bf16)) == 2048);
  // What cuBLAS multiplies has a size of its own, and masks are told by the host.
  CHECK(rows_of(problem_of(17776, 64, DType::f32)) == 0);
  CHECK(rows_of(problem_of(17776, 64, DType::bf16, Mask::causal())) == 2048);
}

}  // namespace attnscope::test
