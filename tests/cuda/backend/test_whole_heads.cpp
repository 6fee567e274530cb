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
#include "kernels/cuda/host/tensors/key_memory.h"
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
    emulation::Device device = emulation::Device::of(major);
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

TEST_CASE("tiles come after the norms of all their head's rows, with the bits of panels") {
  const Oracle oracle(kHead);
  const int64_t rows = 2300, keys = 1100;
  const TileRequest request{.encoding = Encoding::f32, .chunk_rows = 384, .chunk_cols = 600};
  class Sink : public TileSink {
   public:
    explicit Sink(const TileRequest& of) : request_(of), weights(2300 * 1100), norms(2300) {}
    TileRequest request() const override { return request_; }
    void begin(std::span<const HeadTask>, int) override {}
    void consume(const Tile& tile) override {
      std::copy(tile.norms.begin(), tile.norms.end(), norms.begin() + tile.rows.begin);
      for (size_t c = 0; c < tile.chunks.size(); ++c) {
        const int64_t first = tile.cols.begin + static_cast<int64_t>(c) * request_.chunk_cols;
        const int64_t width = std::min(request_.chunk_cols, tile.cols.end - first);
        const auto* from = reinterpret_cast<const float*>(tile.chunks[c]);
        for (int64_t r = tile.rows.begin; r < tile.rows.end; ++r, from += request_.chunk_cols) {
          std::copy_n(from, width, weights.begin() + r * 1100 + first);
        }
      }
    }
    void end() override {}

   private:
    const TileRequest request_;

   public:
    std::vector<float> weights;
    std::vector<RowNorm> norms;
  };
  const OneDevice device(9);
  const HeadTask task{&oracle.problem(), 0, 0, {0, rows}, {}, {0, keys}};
  const auto stream = [&](int64_t bytes) {
    Sink sink(request);
    MemoryBudget budget(bytes);
    const TilePlan plan = plan_tiles({&task, 1}, request, *device.backend, bytes);
    CHECK(plan.panel_rows == 384);
    REQUIRE(StreamingEngine(*device.backend, budget).run({&task, 1}, plan, sink));
    return std::pair(std::move(sink.weights), std::move(sink.norms));
  };
  const uint64_t sums = emulation::launches_of("sum_rows");
  const auto [weights, norms] = stream(int64_t{1} << 30);
  CHECK(emulation::launches_of("sum_rows") - sums == 1);
  // Of a panel, from rows of its own.
  std::vector<int64_t> panel;
  for (int64_t i = 768; i < 1152; ++i) panel.push_back(i);
  GuardedTile tile(384, keys, keys, Encoding::f32);
  const auto panel_norms =
      HeadRun(oracle, *device.backend, 0, 0).emit_panel(panel, {0, keys}, tile);
  CHECK(same_bits({norms.begin() + 768, norms.begin() + 1152}, panel_norms));
  for (int64_t r = 0; r < 384; r += 7) {
    const std::vector<std::byte> row = tile.row_bytes(r);
    REQUIRE(std::memcmp(row.data(), weights.data() + (768 + r) * keys, row.size()) == 0);
  }
  for (int64_t i = 5; i < rows; i += 101) {
    const Oracle::Row expected = oracle.row(0, 0, i);
    for (size_t j = 0; j < 1100; ++j) {
      REQUIRE(std::fabs(static_cast<double>(weights[static_cast<size_t>(i * keys) + j]) -
                        expected.weights[j]) <= 1e-3 / 1100 + 2e-4 * expected.weights[j]);
    }
  }
  // Where the host's memory has no room for all rows, they come with their panels.
  const TilePlan plenty = plan_tiles({&task, 1}, request, *device.backend, int64_t{1} << 30, 1);
  CHECK(plenty.norm_rows >= rows);
  const TilePlan less = plan_tiles({&task, 1}, request, *device.backend, plenty.bytes_total - 1, 1);
  CHECK(less.norm_rows == 0);
  const uint64_t panels = emulation::launches_of("sum_rows");
  CHECK(stream(plenty.bytes_total - 1).first == weights);
  CHECK(emulation::launches_of("sum_rows") - panels == 6);
  // One panel has its norms with its entries.
  HeadTask low = task;
  low.rows = {0, 300};
  CHECK(plan_tiles({&low, 1}, request, *device.backend, int64_t{1} << 30).norm_rows == 0);
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
  // The one that fits best, whichever came back first.
  CHECK(size_of(999) == 1000);
  CHECK(size_of(1001) == 1001);
  CHECK(size_of(999) == 1000);
  // Memory that nobody uses makes way.
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
  // Products of cuBLAS have a size of their own (0 here), and masks are told by the host.
  CHECK(rows_of(problem_of(17776, 64, DType::f32)) == 0);
  CHECK(rows_of(problem_of(17776, 64, DType::bf16, Mask::causal())) == 2048);
}

}  // namespace attnscope::test
