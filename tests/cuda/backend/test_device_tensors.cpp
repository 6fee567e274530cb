// Q and K that lie in a device's memory, as a model leaves them there: the same bits as through the
// host, without their bytes. On the emulation.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/streaming_engine.h"
#include "core/stream/tile_plan.h"
#include "core/stream/value_check.h"
#include "core/tensor/device_tensor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/tensors/device_reader.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

/// Devices, a backend on some of them, and what reads their memory.
struct DeviceBench {
  std::vector<std::string> notices;
  std::unique_ptr<DeviceReader> reader;
  std::unique_ptr<TileBackend> backend;

  explicit DeviceBench(int major = 8, int devices = 1, int64_t vram_bytes = 0, int tasks = 1) {
    emulation::reset();
    emulation::Device device = emulation::Device::of(major);
    emulation::set_devices(std::vector<emulation::Device>(static_cast<size_t>(devices), device));
    CudaModuleOptions options;
    options.vram_bytes = vram_bytes;
    options.threads = 2;
    options.tasks = tasks;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
    reader = cuda::make_device_reader();
  }
};

/// How a tensor lies in memory.
enum class Lying {
  packed,  ///< [batch, head, token, channel]
  slice,  ///< [batch, token, head, channel] of a larger tensor, as one projection to q, k, v yields
  shd,    ///< [token, head, channel], of a single batch item
  spread,    ///< every other channel, tokens backwards
  repeated,  ///< every token of a head is its first one
};
constexpr Lying kLyings[] = {Lying::packed, Lying::slice, Lying::shd, Lying::spread};

struct Strides {
  int64_t batch, head, token, channel, first, elements;
};

Strides strides_of(const HeadTensor& t, Lying lying) {
  const int64_t b = t.batch(), h = t.heads(), s = t.tokens(), d = t.width();
  switch (lying) {
    case Lying::packed:
      return {h * s * d, s * d, d, 1, 0, b * h * s * d};
    case Lying::slice:
      return {(s + 7) * h * 3 * d, 3 * d, h * 3 * d, 1, 5 * h * 3 * d + d, b * (s + 7) * h * 3 * d};
    case Lying::shd:
      return {0, d, h * d, 1, 0, s * h * d};
    case Lying::spread: {
      const int64_t row = 2 * d + 3;
      return {h * s * row, s * row, -row, 2, (s - 1) * row, b * h * s * row};
    }
    case Lying::repeated:
      break;
  }
  return {h * d, d, 0, 1, 0, b * h * d};
}

/// A copy of the tensor in the memory of a device, all else of which is NaN. `owner` knows whether
/// it was given back.
HeadTensor copy_to_device(const HeadTensor& tensor, Lying lying, int device,
                          const DeviceReader& reader, std::weak_ptr<const void>* owner = nullptr) {
  const int64_t element = dtype_bytes(tensor.dtype());
  const Strides at = strides_of(tensor, lying);
  std::vector<std::byte> bytes(static_cast<size_t>(at.elements * element), std::byte{0xff});
  std::vector<std::byte> rows(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
  for (int64_t b = 0; b < tensor.batch(); ++b) {
    for (int64_t h = 0; h < tensor.heads(); ++h) {
      tensor.read_rows(b, h, {0, tensor.tokens()}, rows.data());
      // The last one that is written counts where all tokens are one.
      for (int64_t i = tensor.tokens() * tensor.width() - 1; i >= 0; --i) {
        const int64_t to = at.first + b * at.batch + h * at.head + i / tensor.width() * at.token +
                           i % tensor.width() * at.channel;
        std::memcpy(bytes.data() + to * element, rows.data() + i * element,
                    static_cast<size_t>(element));
      }
    }
  }
  const cuda::KeptDevice kept;
  void* memory = nullptr;
  cuda::check(cudaSetDevice(device), "device");
  cuda::check(cudaMalloc(&memory, bytes.size()), "memory");
  cuda::check(cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "copy");
  DeviceTensor::Parts parts;
  parts.name = tensor.source().name();
  parts.dtype = tensor.dtype();
  parts.device = device;
  parts.data = static_cast<const std::byte*>(memory) + at.first * element;
  parts.reader = &reader;
  parts.owner = std::shared_ptr<const void>(memory, [](void* given) { cudaFree(given); });
  if (owner != nullptr) *owner = parts.owner;
  reader.wait(device);
  if (lying == Lying::shd) {
    REQUIRE(tensor.batch() == 1);
    parts.shape = {tensor.tokens(), tensor.heads(), tensor.width()};
    parts.strides = {at.token, at.head, at.channel};
    return {std::make_shared<DeviceTensor>(std::move(parts)), Layout::shd};
  }
  if (lying == Lying::slice) {
    parts.shape = {tensor.batch(), tensor.tokens(), tensor.heads(), tensor.width()};
    parts.strides = {at.batch, at.token, at.head, at.channel};
    return {std::make_shared<DeviceTensor>(std::move(parts)), Layout::bshd};
  }
  parts.shape = {tensor.batch(), tensor.heads(), tensor.tokens(), tensor.width()};
  parts.strides = {at.batch, at.head, at.token, at.channel};
  return {std::make_shared<DeviceTensor>(std::move(parts)), Layout::bhsd};
}

AttentionProblem with_tensors(const AttentionProblem& problem, HeadTensor q, HeadTensor k) {
  AttentionProblem::Parts parts;
  parts.q = std::move(q);
  parts.k = std::move(k);
  parts.v = problem.v();
  parts.scale = problem.scales();
  parts.score = problem.score();
  parts.mask = problem.mask();
  parts.query_tokens = problem.query_tokens();
  parts.key_tokens = problem.key_tokens();
  parts.id = problem.id();
  parts.name = problem.name();
  return AttentionProblem::make(std::move(parts));
}

AttentionProblem on_device(const AttentionProblem& problem, Lying lying, const DeviceBench& bench,
                           int q_device = 0, int k_device = 0) {
  return with_tensors(problem, copy_to_device(problem.q(), lying, q_device, *bench.reader),
                      copy_to_device(problem.k(), lying, k_device, *bench.reader));
}

/// Every head, all rows or those of a list.
std::vector<HeadTask> tasks_of(const AttentionProblem& problem,
                               std::span<const int64_t> list = {}) {
  std::vector<HeadTask> tasks;
  for (int64_t b = 0; b < problem.batch(); ++b) {
    for (int64_t h = 0; h < problem.num_heads(); ++h) {
      tasks.push_back({&problem, b, h, {0, problem.num_queries()}, list, {0, problem.num_keys()}});
    }
  }
  return tasks;
}

/// Norms and, where they are wanted, entries or outputs of all tasks, as bytes.
class ByteSink : public TileSink {
 public:
  ByteSink(std::span<const HeadTask> tasks, const TileRequest& request)
      : rows_(tasks.front().num_rows()),
        cols_(request.outputs ? tasks.front().problem->v().width() : tasks.front().keys.size()),
        request_(request) {
    const auto rows = static_cast<size_t>(std::ssize(tasks) * rows_);
    norms.resize(rows);
    if (request.entries) entries.resize(rows * static_cast<size_t>(cols_));
  }
  TileRequest request() const override { return request_; }
  void begin(std::span<const HeadTask>, int) override {}
  void end() override {}
  void consume(const Tile& tile) override {
    const int64_t first = tile.task_index * rows_ + tile.rows.begin;
    std::copy(tile.norms.begin(), tile.norms.end(), norms.begin() + first);
    for (size_t c = 0; c < tile.chunks.size(); ++c) {
      const int64_t begin = tile.cols.begin + static_cast<int64_t>(c) * request_.chunk_cols;
      const int64_t width = std::min(request_.chunk_cols, tile.cols.end - begin);
      const auto* const from = reinterpret_cast<const float*>(tile.chunks[c]);
      for (int64_t r = 0; from != nullptr && r < tile.rows.size(); ++r) {
        std::copy_n(from + r * request_.chunk_cols, width,
                    entries.begin() + (first + r) * cols_ + begin);
      }
    }
  }
  bool is_same(const ByteSink& other) const {
    const auto same_norm = [](const RowNorm& a, const RowNorm& b) {
      return std::memcmp(&a.sum, &b.sum, sizeof(double)) == 0 && a.exponent == b.exponent;
    };
    return norms.size() == other.norms.size() && entries.size() == other.entries.size() &&
           std::equal(norms.begin(), norms.end(), other.norms.begin(), same_norm) &&
           std::memcmp(entries.data(), other.entries.data(), entries.size() * 4) == 0;
  }

  std::vector<RowNorm> norms;
  std::vector<float> entries;

 private:
  const int64_t rows_, cols_;
  const TileRequest request_;
};

constexpr TileRequest kEntries{.chunk_rows = 128, .chunk_cols = 200};
constexpr TileRequest kNorms{.entries = false};

ByteSink streamed(const AttentionProblem& problem, const TileBackend& backend,
                  const TileRequest& request = kEntries, std::span<const int64_t> list = {}) {
  const std::vector<HeadTask> tasks = tasks_of(problem, list);
  ByteSink sink(tasks, request);
  MemoryBudget budget(int64_t{1} << 30);
  const TilePlan plan = plan_tiles(tasks, request, backend, budget.limit());
  const bool done = StreamingEngine(backend, budget).run(tasks, plan, sink);
  REQUIRE(done);
  return sink;
}

AttentionCase case_of(DType dtype, int64_t batch = 1) {
  return {.shape = {batch, 4, 2, 200, 310, 40}, .dtype = dtype};
}

const std::vector<int64_t> kSomeRows{0, 1, 2, 17, 40, 41, 130, 199};

/// The bytes that were copied since this was made.
struct Copied {
  emulation::Counters before = emulation::counters();

  uint64_t to_device() const {
    return emulation::counters().bytes_to_device - before.bytes_to_device;
  }
  uint64_t to_host() const { return emulation::counters().bytes_to_host - before.bytes_to_host; }
  uint64_t between() const {
    return emulation::counters().bytes_between_devices - before.bytes_between_devices;
  }
};

/// Nothing of a device is left.
void check_all_given_back() {
  const emulation::Counters left = emulation::counters();
  CHECK(left.device_allocations == 0);
  CHECK(left.host_allocations == 0);
  CHECK(left.streams == 0);
  CHECK(left.events == 0);
  CHECK(left.cublas_handles == 0);
}

}  // namespace

TEST_CASE("tensors of a device yield the bits of tensors of the host, however they lie") {
  for (const int major : {7, 8, 9}) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      const Oracle oracle(case_of(dtype));
      const DeviceBench bench(major);
      const ByteSink expected = streamed(oracle.problem(), *bench.backend);
      const ByteSink some = streamed(oracle.problem(), *bench.backend, kEntries, kSomeRows);
      for (const Lying lying : kLyings) {
        INFO(major << " " << dtype_name(dtype) << ", lying " << static_cast<int>(lying));
        const AttentionProblem problem = on_device(oracle.problem(), lying, bench);
        const uint64_t gathered = emulation::launches_of("gather_rows");
        CHECK(streamed(problem, *bench.backend).is_same(expected));
        CHECK(emulation::launches_of("gather_rows") > gathered);
        CHECK(streamed(problem, *bench.backend, kEntries, kSomeRows).is_same(some));
      }
      CHECK(bench.notices.empty());
    }
  }
}

TEST_CASE("batch items, masks and tokens that are all one come from a device as from the host") {
  const DeviceBench bench(9);
  AttentionCase masked = case_of(DType::bf16, 2);
  masked.mask = "causal";
  masked.shape.keys = 200;
  const Oracle oracle(masked);
  const ByteSink expected = streamed(oracle.problem(), *bench.backend);
  for (const Lying lying : {Lying::packed, Lying::slice, Lying::spread}) {
    const AttentionProblem problem = on_device(oracle.problem(), lying, bench);
    CHECK(streamed(problem, *bench.backend).is_same(expected));
  }
  // Stride 0: what it reads as on the host is what counts.
  const AttentionProblem repeated = on_device(oracle.problem(), Lying::repeated, bench);
  std::vector<std::byte> q(static_cast<size_t>(2 * 4 * 200 * 40 * 2));
  std::vector<std::byte> k(q.size() / 2);
  const std::vector<int64_t> zero{0, 0, 0, 0}, all{2, 4, 200, 40}, half{2, 2, 200, 40};
  repeated.q().source().read(zero, all, q.data());
  repeated.k().source().read(zero, half, k.data());
  const AttentionProblem on_host = with_tensors(
      oracle.problem(),
      {std::make_shared<MemoryTensor>("q", DType::bf16, all, std::move(q)), Layout::bhsd},
      {std::make_shared<MemoryTensor>("k", DType::bf16, half, std::move(k)), Layout::bhsd});
  CHECK(streamed(repeated, *bench.backend).is_same(streamed(on_host, *bench.backend)));
}

TEST_CASE("no byte of queries and keys goes through the host") {
  for (const int major : {7, 8, 9}) {
    for (const DType dtype : {DType::f16, DType::f32}) {
      const Oracle oracle(case_of(dtype));
      const DeviceBench bench(major);
      const AttentionProblem problem = on_device(oracle.problem(), Lying::slice, bench);
      // Ways to compute are checked when they are first used, on maps of the host.
      streamed(oracle.problem(), *bench.backend);
      INFO(major << " " << dtype_name(dtype));
      const Copied through_host;
      streamed(oracle.problem(), *bench.backend, kNorms);
      const auto row_bytes = static_cast<uint64_t>(oracle.problem().q().row_bytes());
      CHECK(through_host.to_device() == 4 * (200 + 310) * row_bytes);
      const uint64_t fetched = through_host.to_host();
      const Copied straight;
      streamed(problem, *bench.backend, kNorms);
      CHECK(straight.to_device() == 0);
      // The row sums and the longest key's length, as before.
      CHECK(straight.to_host() == fetched);
    }
  }
}

TEST_CASE("NaN and infinities are found where they are, and told as those of the host") {
  const DeviceBench bench;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const float wrong : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
      for (const bool in_keys : {false, true}) {
        const Oracle oracle(case_of(dtype));
        const HeadTensor& good = in_keys ? oracle.problem().k() : oracle.problem().q();
        std::vector<std::byte> bytes(
            static_cast<size_t>(good.heads() * good.tokens() * good.row_bytes()));
        for (int64_t h = 0; h < good.heads(); ++h) {
          good.read_rows(0, h, {0, good.tokens()},
                         bytes.data() + h * good.tokens() * good.row_bytes());
        }
        const uint16_t half = dtype == DType::f16 ? to_f16(wrong).bits : to_bf16(wrong).bits;
        for (const int64_t token : {150, 121}) {
          std::byte* const at =
              bytes.data() + (good.tokens() + token) * good.row_bytes() + 33 * dtype_bytes(dtype);
          if (dtype == DType::f32) {
            std::memcpy(at, &wrong, 4);
          } else {
            std::memcpy(at, &half, 2);
          }
        }
        const HeadTensor bad(
            std::make_shared<MemoryTensor>(
                in_keys ? "k" : "q", dtype,
                std::vector<int64_t>{1, good.heads(), good.tokens(), good.width()}, bytes),
            Layout::bhsd);
        const AttentionProblem on_host =
            with_tensors(oracle.problem(), in_keys ? oracle.problem().q() : bad,
                         in_keys ? bad : oracle.problem().k());
        const AttentionProblem problem = on_device(on_host, Lying::spread, bench);
        const auto expected = error_of([&] { check_values(tasks_of(on_host), {}); });
        const Copied copied;
        const auto error = error_of([&] { check_values(tasks_of(problem), {}, {.threads = 4}); });
        REQUIRE(expected);
        REQUIRE(error);
        CHECK(contains(expected->what(), "head 1, token 121, channel 33"));
        CHECK(std::string(error->what()) == expected->what());
        CHECK(error->code() == ErrorCode::value);
        // A row, and what each search has found.
        CHECK(copied.to_host() <= static_cast<uint64_t>(good.row_bytes() + 4 * 4 * 2));
        CHECK(copied.to_device() == 0);
      }
    }
  }
  // Memory between the tensor's elements does not matter: all of it is NaN.
  const Oracle oracle(case_of(DType::f16));
  const AttentionProblem problem = on_device(oracle.problem(), Lying::slice, bench);
  CHECK_FALSE(error_of([&] { check_values(tasks_of(problem), {}); }));
}

TEST_CASE("tensors of another device are copied straight where it is reached") {
  for (const auto& [q_device, k_device] : {std::pair{1, 1}, std::pair{0, 1}, std::pair{1, 0}}) {
    const Oracle oracle(case_of(DType::f16));
    const DeviceBench bench(9, 2);
    const ByteSink expected = streamed(oracle.problem(), *bench.backend);
    const ByteSink some = streamed(oracle.problem(), *bench.backend, kEntries, kSomeRows);
    for (const Lying lying : {Lying::packed, Lying::slice, Lying::shd}) {
      const AttentionProblem problem =
          on_device(oracle.problem(), lying, bench, q_device, k_device);
      CHECK(streamed(problem, *bench.backend).is_same(expected));
      CHECK(streamed(problem, *bench.backend, kEntries, kSomeRows).is_same(some));
      const Copied copied;
      streamed(problem, *bench.backend, kNorms);
      CHECK(copied.to_device() == 0);
      // Heads go to both devices in turn.
      CHECK(copied.between() == 2 * (200 + 310) * 80);
    }
    CHECK(bench.notices.empty());
  }
}

TEST_CASE("tensors of another device go through the host where they must, which is told once") {
  const Oracle oracle(case_of(DType::bf16));
  for (const bool apart : {true, false}) {
    // Of two devices, the backend has the first.
    const DeviceBench bench(8, 2, 0, 2);
    emulation::part_devices(apart);
    const ByteSink expected = streamed(oracle.problem(), *bench.backend);
    const AttentionProblem problem =
        on_device(oracle.problem(), apart ? Lying::slice : Lying::spread, bench, 1, 1);
    CHECK(streamed(problem, *bench.backend).is_same(expected));
    CHECK(streamed(problem, *bench.backend).is_same(expected));
    const std::string reason =
        apart ? "it does not reach the other's memory" : "their rows do not lie in one piece";
    CHECK(bench.notices == std::vector<std::string>{"cuda: tensors in the memory of device 1 come "
                                                    "to device 0 through the host: " +
                                                    reason});
  }
}

TEST_CASE("what comes from another device as it was not goes through the host") {
  const Oracle oracle(case_of(DType::f16));
  const DeviceBench bench(8, 2, 0, 2);
  const ByteSink expected = streamed(oracle.problem(), *bench.backend);
  emulation::spoil_peer_copies(true);
  const AttentionProblem problem = on_device(oracle.problem(), Lying::packed, bench, 1, 1);
  CHECK(streamed(problem, *bench.backend).is_same(expected));
  CHECK(bench.notices ==
        std::vector<std::string>{"cuda: tensors in the memory of device 1 come to device 0 through "
                                 "the host: copies between them come out wrong"});
  CHECK(streamed(problem, *bench.backend).is_same(expected));
  CHECK(bench.notices.size() == 1);
}

TEST_CASE("features are made on the host, and V is read there") {
  AttentionCase linear = case_of(DType::f16);
  linear.score = ScoreFunction::linear_elu1;
  linear.value_width = 24;
  AttentionCase plain = case_of(DType::f16);
  plain.value_width = 24;
  const TileRequest outputs{.outputs = true, .chunk_rows = 128, .chunk_cols = 24};
  for (const AttentionCase& description : {linear, plain}) {
    const DeviceBench bench;
    const Oracle oracle(description);
    const AttentionProblem problem = on_device(oracle.problem(), Lying::slice, bench);
    CHECK(streamed(problem, *bench.backend).is_same(streamed(oracle.problem(), *bench.backend)));
    CHECK(streamed(problem, *bench.backend, outputs)
              .is_same(streamed(oracle.problem(), *bench.backend, outputs)));
    CHECK(bench.notices.size() == (is_linear(description.score) ? 1 : 0));
  }
}

TEST_CASE("reductions of a device's tensors are those of the host's") {
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals& totals) override { columns = totals.column_mass(); }
    std::vector<double> columns;
  };
  // On 7.5 blocks lack the memory, and the CPU reduces.
  for (const int major : {7, 9}) {
    const DeviceBench bench(major);
    const Oracle oracle(case_of(DType::f16));
    const AttentionProblem problem = on_device(oracle.problem(), Lying::slice, bench);
    const std::vector<int64_t> shares{3, 77};
    const auto reduced = [&](const AttentionProblem& of) {
      ReductionRequest request;
      request.rows = request.columns = true;
      request.share_rows = shares;
      const ReductionJob job{{&of, 0, 2, {0, 200}, {}, {0, 310}}, request};
      MemoryBudget budget(int64_t{1} << 30);
      const ReductionPlan plan = plan_reductions({&job, 1}, *bench.backend, budget.limit(), 1);
      Sink sink;
      REQUIRE(ReductionStream(*bench.backend, budget).run({&job, 1}, plan, sink));
      return sink.columns;
    };
    const std::vector<double> columns = reduced(problem);
    CHECK(columns.size() == 310);
    CHECK(columns == reduced(oracle.problem()));
  }
}

TEST_CASE("where device memory is short the CPU computes a device's tensors all the same") {
  const Oracle oracle(case_of(DType::f16));
  size_t most = 0;
  {
    const DeviceBench bench;
    streamed(oracle.problem(), *bench.backend);
    most = emulation::counters().peak_device_bytes;
  }
  bool on_cpu = false;
  for (size_t limit = most; limit > 10000; limit = limit * 2 / 3) {
    const DeviceBench bench(8, 1, static_cast<int64_t>(limit));
    const AttentionProblem problem = on_device(oracle.problem(), Lying::slice, bench);
    const ByteSink sink = streamed(problem, *bench.backend);
    streamed(problem, *bench.backend, kNorms);
    for (int64_t row = 0; row < 200; row += 13) {
      const Oracle::Row expected = oracle.row(0, 3, row);
      const double lse = sink.norms[static_cast<size_t>(600 + row)].lse();
      REQUIRE(std::fabs(lse - expected.lse) <= 1e-5 + expected.logit_error);
      const float* const weights = sink.entries.data() + (600 + row) * 310;
      for (size_t key = 0; key < 310; ++key) {
        REQUIRE(std::fabs(weights[key] - expected.weights[key]) <= 1e-5);
      }
    }
    for (const std::string& line : bench.notices) on_cpu |= contains(line, "CPU");
  }
  CHECK(on_cpu);
}

TEST_CASE("a call that fails leaves nothing behind, and gives the tensors back") {
  const Oracle oracle(case_of(DType::f16));
  int failed = 0, done = 0;
  for (const emulation::Call call :
       {emulation::Call::kCopy, emulation::Call::kLaunch, emulation::Call::kMalloc,
        emulation::Call::kHostAlloc, emulation::Call::kCreateStream}) {
    const bool queued = call == emulation::Call::kCopy || call == emulation::Call::kLaunch;
    for (int nth = 1; nth <= 14; nth += nth < 6 ? 1 : 4) {
      for (const bool when_run : {false, true}) {
        if (when_run && !queued) continue;
        // The failure meets the search for NaN, or what comes after.
        const bool searched = nth % 2 == 0;
        std::weak_ptr<const void> q_owner, k_owner;
        {
          const DeviceBench bench(9, 2, 0, 2);
          INFO("call " << static_cast<int>(call) << ", number " << nth << ", " << when_run);
          const AttentionProblem problem = with_tensors(
              oracle.problem(),
              copy_to_device(oracle.problem().q(), Lying::slice, 0, *bench.reader, &q_owner),
              copy_to_device(oracle.problem().k(), Lying::slice, 1, *bench.reader, &k_owner));
          if (searched) check_values(tasks_of(problem), {});
          const auto status =
              call == emulation::Call::kMalloc ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
          emulation::fail(call, nth, status,
                          when_run ? emulation::Failure::kWhenRun : emulation::Failure::kOnce);
          const auto error = error_of([&] {
            if (!searched) check_values(tasks_of(problem), {});
            streamed(problem, *bench.backend);
          });
          if (error) {
            CHECK(
                (error->code() == ErrorCode::unavailable || error->code() == ErrorCode::resource));
            CHECK(contains(error->what(), "cuda: "));
          }
          ++(error ? failed : done);
        }
        CHECK(q_owner.expired());
        CHECK(k_owner.expired());
        check_all_given_back();
      }
    }
  }
  CHECK(failed > 20);
  CHECK(done > 0);
}

TEST_CASE("the reader waits for the default stream, and leaves the thread's device alone") {
  {
    const DeviceBench bench(8, 2);
    int now = -1;
    cuda::check(cudaGetDevice(&now), "device");
    CHECK(now == 0);
    // A producer fills memory on a stream of its own, which the default stream waits for.
    const cuda::KeptDevice kept;
    cuda::check(cudaSetDevice(1), "device");
    const cuda::Stream producer;
    const cuda::Event event;
    void* memory = nullptr;
    cuda::check(cudaMalloc(&memory, 4), "memory");
    cuda::PinnedMemory values(4);
    const float one = 1;
    std::memcpy(values.data(), &one, 4);
    cuda::check(cudaMemcpyAsync(memory, values.data(), 4, cudaMemcpyHostToDevice, producer), "");
    event.record(producer);
    cuda::check(cudaStreamWaitEvent(nullptr, event), "order");
    cuda::check(cudaSetDevice(0), "device");
    CHECK(std::memcmp(memory, &one, 4) != 0);
    bench.reader->wait(1);
    CHECK(std::memcmp(memory, &one, 4) == 0);
    float read = 0;
    const DeviceRows rows{
        bench.reader.get(), 1, static_cast<const std::byte*>(memory), DType::f32, 1, 1, 1, 1};
    bench.reader->read(rows, reinterpret_cast<std::byte*>(&read));
    CHECK(read == 1);
    CHECK(bench.reader->first_not_finite(rows) == -1);
    cuda::check(cudaGetDevice(&now), "device");
    CHECK(now == 0);
    cudaFree(memory);
    CHECK(refused([&] { bench.reader->wait(5); }, ErrorCode::unavailable, {"cuda: "}) == "");
  }
  check_all_given_back();
}

TEST_CASE("the reader says when a device has no memory left") {
  const DeviceBench bench;
  const Oracle oracle(case_of(DType::f16));
  const AttentionProblem problem = on_device(oracle.problem(), Lying::packed, bench);
  emulation::fail_every_malloc(1);
  CHECK(refused([&] { problem.check_finite(0, 0); }, ErrorCode::resource,
                {"cuda: no memory is left on device 0"}) == "");
  std::vector<std::byte> rows(static_cast<size_t>(problem.q().row_bytes()));
  CHECK(refused(
            [&] {
              problem.q().read_rows(0, 0, {0, 1}, rows.data());
            },
            ErrorCode::resource, {"cuda: no memory is left on device 0"}) == "");
  emulation::fail_every_malloc(0);
  problem.check_finite(0, 0);
}

}  // namespace attnscope::test
