// Cases of the CUDA backend that the suite of all backends cannot see: memory that runs out,
// devices that fail, several devices. On the emulation.
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/head/lane.h"
#include "kernels/cuda/host/trust/known_answers.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

/// A backend on devices of its own, and what it has told.
struct Bench {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;

  explicit Bench(int devices = 1, int64_t vram_bytes = 0, int major = 8, bool spoilt = false) {
    emulation::reset();
    emulation::spoil_warpgroups(spoilt);
    emulation::Device device = emulation::Device::of(major);
    emulation::set_devices(std::vector<emulation::Device>(static_cast<size_t>(devices), device));
    CudaModuleOptions options;
    options.vram_bytes = vram_bytes;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
  }
};

const AttentionCase kCase{
    .shape = {1, 2, 1, 300, 1500, 64}, .dtype = DType::bf16, .mask = "causal"};

/// The largest difference of a head's weights from those of the definition, in parts of 1 / keys.
double worst_weight(const Oracle& oracle, const TileBackend& backend, int64_t head = 0) {
  const HeadRun run(oracle, backend, 0, head);
  const int64_t rows = oracle.problem().num_queries();
  const int64_t keys = oracle.problem().num_keys();
  GuardedTile tile(rows, keys, 500, Encoding::f32);
  run.emit_panel(iota(rows), {0, keys}, tile);
  CHECK(tile.guards_intact());
  double worst = 0;
  for (int64_t i = 0; i < rows; i += 7) {
    const Oracle::Row row = oracle.row(0, head, i);
    for (int64_t j = 0; j < keys; ++j) {
      const double weight = row.weights[static_cast<size_t>(j)];
      const double error = std::fabs(tile.value(i, j) - weight) / (1e-3 / 1500 + 2e-4 * weight);
      worst = std::max(worst, error);
    }
  }
  return worst;
}

std::string error_of(const std::function<void()>& action, ErrorCode expected) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == expected);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("everything that a backend takes from its devices is given back") {
  const Oracle oracle(kCase);
  for (const int major : {7, 8, 9}) {
    {
      Bench bench(1, 0, major);
      const uint64_t gemms = emulation::counters().gemms;
      CHECK(worst_weight(oracle, *bench.backend) <= 1);
      CHECK(emulation::counters().device_allocations > 0);
      CHECK((emulation::counters().gemms > gemms) == (major == 7));
    }
    const emulation::Counters left = emulation::counters();
    CHECK(left.device_allocations == 0);
    CHECK(left.host_allocations == 0);
    CHECK(left.streams == 0);
    CHECK(left.events == 0);
    CHECK(left.cublas_handles == 0);
  }
}

TEST_CASE("device memory stays within its limit: steps are halved, then the CPU computes") {
  const Oracle oracle(kCase);
  size_t most = 0;
  {
    Bench bench;
    CHECK(worst_weight(oracle, *bench.backend) <= 1);
    CHECK(bench.notices.empty());
    most = emulation::counters().peak_device_bytes;
  }
  std::set<std::string> seen;
  for (size_t limit = most; limit > 10000; limit = limit * 3 / 4) {
    Bench bench(1, static_cast<int64_t>(limit));
    INFO(limit << " of " << most << " bytes");
    CHECK(worst_weight(oracle, *bench.backend) <= 1);
    CHECK(emulation::counters().peak_device_bytes <= limit);
    for (const std::string& line : bench.notices) {
      for (const char* what : {"halved", "a part is computed on the CPU", "the keys of a head"}) {
        if (line.find(what) != std::string::npos) seen.insert(what);
      }
    }
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("capped logits are the processor's, which is told once") {
  AttentionCase description = kCase;
  description.score = ScoreFunction::softcap(5);
  description.sinks = "query";
  const Oracle oracle(description);
  Bench bench;
  CHECK(worst_weight(oracle, *bench.backend) <= 1);
  CHECK(worst_weight(oracle, *bench.backend, 1) <= 1);
  CHECK(bench.backend->name_for(oracle.problem()).starts_with("cpu"));
  CHECK(bench.notices ==
        std::vector<std::string>{"cuda: heads with capped logits are computed by the cpu"});
}

TEST_CASE("an allocation that the driver refuses is no error") {
  const Oracle oracle(kCase);
  for (const int every : {2, 3, 5, 7}) {
    Bench bench;
    emulation::fail_every_malloc(every);
    INFO("every " << every);
    CHECK(worst_weight(oracle, *bench.backend) <= 1);
    emulation::fail_every_malloc(0);
  }
}

TEST_CASE("a device that cannot even be opened for want of memory is refused or left out") {
  const Oracle oracle(kCase);
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  std::vector<std::string> notices;
  options.notice = [&](const std::string& line) { notices.push_back(line); };
  // The first queue is the one that keys are uploaded by, the second a worker's.
  emulation::reset();
  emulation::fail(emulation::Call::kCreateStream, 1, cudaErrorMemoryAllocation);
  CHECK(error_of([&] { make_device_backend(options); }, ErrorCode::unavailable)
            .find("cuda: no memory is left on the device") == 0);
  emulation::reset();
  emulation::fail(emulation::Call::kCreateStream, 2, cudaErrorMemoryAllocation);
  const auto backend = make_device_backend(options);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("a part is computed on the CPU") != std::string::npos);
  CHECK(worst_weight(oracle, *backend) <= 1);
  CHECK(notices.size() == 1);
}

namespace {

HeadTotals totals_of(const Oracle& oracle, const TileBackend& backend) {
  ReductionRequest request;
  request.rows = request.entropy = request.max_keys = request.columns = true;
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals& head_totals) override { totals = head_totals; }
    HeadTotals totals;
  };
  const ReductionJob job{{&oracle.problem(), 0, 1, {0, 300}, {}, {0, 1500}}, request};
  Sink sink;
  MemoryBudget budget(int64_t{1} << 30);
  ReductionStream stream(backend, budget);
  CHECK(stream.run({&job, 1}, plan_reductions({&job, 1}, backend, int64_t{1} << 30, 1), sink));
  return sink.totals;
}

void check_totals(const Oracle& oracle, const TileBackend& backend) {
  const HeadTotals got = totals_of(oracle, backend);
  const HeadTotals expected = totals_of(oracle, *make_cpu_backend({.threads = 1}));
  CHECK(expected.mean(RowValue::entropy) > 1);
  CHECK(got.mean(RowValue::entropy) == Approx(expected.mean(RowValue::entropy)).epsilon(1e-5));
  const auto columns = got.column_mass();
  const auto expected_columns = expected.column_mass();
  for (size_t j = 0; j < columns.size(); ++j) {
    REQUIRE(columns[j] == Approx(expected_columns[j]).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("reductions under little memory are those of the CPU") {
  AttentionCase description = kCase;
  description.mask = "none";
  const Oracle oracle(description);
  for (const int64_t limit : {int64_t{0}, int64_t{230} << 10, int64_t{100} << 10}) {
    Bench bench(1, limit);
    INFO("limit " << limit);
    check_totals(oracle, *bench.backend);
    CHECK(bench.notices.empty() == (limit == 0));
  }
}

TEST_CASE("sinks are added to what a device sums, in maps and in reductions") {
  for (const int major : {7, 8, 9}) {
    for (const char* const sinks : {"head", "query", "far"}) {
      AttentionCase description = kCase;
      description.sinks = sinks;
      const Oracle oracle(description);
      Bench bench(1, 0, major);
      INFO("compute capability " << major << ", sinks " << sinks);
      CHECK(worst_weight(oracle, *bench.backend) <= 1);
      CHECK(worst_weight(oracle, *bench.backend, 1) <= 1);
      CHECK(bench.backend->name_for(oracle.problem()).starts_with("cuda"));
      if (sinks != std::string("far")) check_totals(oracle, *bench.backend);
      CHECK(bench.notices.empty());
    }
  }
}

TEST_CASE("a device that fails ends the run with a line that says what and where") {
  const Oracle oracle(kCase);
  struct Fault {
    emulation::Call call;
    int nth;
    cudaError_t error;
    emulation::Failure failure;
  };
  for (const Fault& fault :
       {Fault{emulation::Call::kLaunch, 1, cudaErrorInvalidConfiguration,
              emulation::Failure::kOnce},
        Fault{emulation::Call::kLaunch, 2, cudaErrorIllegalAddress, emulation::Failure::kWhenRun},
        Fault{emulation::Call::kCopy, 4, cudaErrorLaunchFailure, emulation::Failure::kSticky},
        Fault{emulation::Call::kSynchronize, 3, cudaErrorUnknown, emulation::Failure::kSticky}}) {
    Bench bench;
    emulation::fail(fault.call, fault.nth, fault.error, fault.failure);
    const std::string message =
        error_of([&] { worst_weight(oracle, *bench.backend); }, ErrorCode::unavailable);
    INFO(message);
    CHECK(message.find("cuda: ") == 0);
    CHECK(message.find(cudaGetErrorName(fault.error)) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
  Bench bench(1, 0, 7);
  emulation::fail_gemm(1, 14);
  CHECK(error_of([&] { worst_weight(oracle, *bench.backend); }, ErrorCode::unavailable)
            .find("cuda: cublasGemmStridedBatchedEx: ") == 0);
}

TEST_CASE("a device that computes something else is refused before it is used") {
  // One weight of one row is off by a hundredth.
  class Wrong : public ForwardingHead {
   public:
    using ForwardingHead::ForwardingHead;
    void emit_panel(const QueryBlock& queries, std::span<RowNorm> norms, IndexRange keys,
                    const EmitTarget& target, std::span<std::byte> workspace) const override {
      ForwardingHead::emit_panel(queries, norms, keys, target, workspace);
      if (queries.index.size() == 140) {
        reinterpret_cast<float*>(target.blocks[0])[127 * target.row_stride + 500] *= 1.01f;
      }
    }
  };
  class WrongBackend : public ForwardingBackend {
   public:
    WrongBackend() : ForwardingBackend(make_cpu_backend({.threads = 1})) {}
    std::string description() const override { return "wrong (a test)"; }

   protected:
    std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
      return std::make_unique<Wrong>(std::move(head));
    }
  };
  const auto cpu = make_cpu_backend({.threads = 1});
  for (const KnownWork work : {KnownWork::entries, KnownWork::reductions, KnownWork::outputs}) {
    CHECK_NOTHROW(check_known_answers(*cpu, *cpu, DType::f32, work));
  }
  const std::string message =
      error_of([&] { check_known_answers(WrongBackend(), *cpu, DType::f16, KnownWork::entries); },
               ErrorCode::unavailable);
  CHECK(message.find("wrong (a test): computes a map of f16 tensors wrongly: ") == 0);
  CHECK(message.find("weight (127, 500) is ") != std::string::npos);
}

TEST_CASE("a device whose warpgroups multiply wrongly works without them") {
  const Oracle oracle(kCase);
  for (const bool spoilt : {false, true}) {
    Bench bench(2, 0, 9, spoilt);
    CHECK(bench.backend->name() == (spoilt ? "cuda-mma" : "cuda-wgmma"));
    CHECK(bench.notices.size() == (spoilt ? 2 : 0));
    for (const std::string& line : bench.notices) {
      CHECK(line.find("cuda: wgmma is not used: cuda (") == 0);
      CHECK(line.find("computes a map of f16 tensors wrongly") != std::string::npos);
    }
    const uint64_t before = emulation::launches_of("WgmmaProduct");
    CHECK(before > 0);
    for (const int64_t head : {0, 1}) CHECK(worst_weight(oracle, *bench.backend, head) <= 1);
    CHECK((emulation::launches_of("WgmmaProduct") > before) == !spoilt);
  }
}

TEST_CASE("two tiles of rows share the keys of which some are empty for one of them") {
  for (const char* mask : {"causal", "window"}) {
    for (const int64_t width : {64, 200}) {
      const Oracle oracle(
          {.shape = {1, 1, 1, 600, 1500, width}, .dtype = DType::f16, .mask = mask});
      INFO(oracle.text());
      Bench bench(1, 0, 9);
      CHECK(worst_weight(oracle, *bench.backend) <= 1);
      CHECK(bench.notices.empty());
    }
  }
}

TEST_CASE("a share of device memory is of each device's own") {
  emulation::reset();
  emulation::Device large;
  large.memory = size_t{1} << 30;
  emulation::Device small = large;
  small.memory_of_others = small.memory / 2;
  emulation::set_devices({large, small});
  for (const double share : {0.0, 0.25}) {
    const double expected = share == 0 ? 0.9 : share;
    const cuda::Device first(0, 0, share);
    const cuda::Device second(1, 0, share);
    CHECK(static_cast<double>(first.limit_bytes()) == Approx(expected * 0x1p30));
    CHECK(static_cast<double>(second.limit_bytes()) == Approx(expected * 0x1p29));
  }
  CHECK(cuda::Device(1, 1000, 0.5).limit_bytes() == 1000);
  small.memory_of_others = small.memory;
  emulation::set_devices({large, small});
  CHECK(error_of([] { cuda::Device(1, 0, 0); }, ErrorCode::resource) ==
        "backend cuda: no memory is free on device 1 (Emulated device)");
}

TEST_CASE("a kernel that fails on a device with warpgroups says how to do without them") {
  emulation::reset();
  emulation::Device device = emulation::Device::of(9);
  emulation::set_devices({device});
  emulation::fail(emulation::Call::kLaunch, 1, cudaErrorLaunchFailure,
                  emulation::Failure::kWhenRun);
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  const std::string message =
      error_of([&] { make_device_backend(options); }, ErrorCode::unavailable);
  CHECK(message.find("cuda: waiting for the device: ") == 0);
  CHECK(message.find("(--backend cuda-mma does without wgmma)") != std::string::npos);
  emulation::reset();
}

TEST_CASE("heads are shared out among the devices") {
  const Oracle oracle(kCase);
  Bench bench(2);
  CHECK(bench.backend->workers() == 8);
  CHECK(bench.backend->description().find("Emulated device, Emulated device") != std::string::npos);
  CHECK(worst_weight(oracle, *bench.backend, 0) <= 1);
  CHECK(worst_weight(oracle, *bench.backend, 1) <= 1);
}

TEST_CASE("processes of a host share its devices out") {
  // The devices that each of 1, 2, 3, 4 or 5 processes takes of three.
  const std::vector<std::vector<std::string>> expected{
      {"012"}, {"02", "1"}, {"0", "1", "2"}, {"0", "1", "2", "0"}, {"0", "1", "2", "0", "1"}};
  for (const auto& taken : expected) {
    const auto tasks = static_cast<int>(taken.size());
    for (int task = 0; task < tasks; ++task) {
      std::string devices;
      for (int device = 0; device < 3; ++device) {
        if (takes_device(device, 3, task, tasks)) devices += std::to_string(device);
      }
      CHECK(devices == taken[static_cast<size_t>(task)]);
    }
  }
  emulation::reset();
  emulation::set_devices(std::vector<emulation::Device>(3));
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  options.task = 1;
  options.tasks = 2;
  CHECK(make_device_backend(options)->workers() == 4);
  options.task = 0;
  CHECK(make_device_backend(options)->workers() == 8);
}

TEST_CASE("a tensor type or width that the tensor cores do not take goes to cuBLAS") {
  struct Choice {
    AttentionCase description;
    bool gemms;
    int major = 8;
    bool wgmma = false;
  };
  for (const Choice& c :
       {Choice{{.shape = {1, 1, 1, 5, 300, 64}, .dtype = DType::f16}, false},
        Choice{{.shape = {1, 1, 1, 5, 300, 64}, .dtype = DType::f32}, true},
        Choice{{.shape = {1, 1, 1, 5, 300, 448}, .dtype = DType::f16}, false},
        Choice{{.shape = {1, 1, 1, 5, 300, 464}, .dtype = DType::f16}, true},
        Choice{{.shape = {1, 1, 1, 5, 300, 64}, .dtype = DType::bf16}, false, 9, true},
        Choice{{.shape = {1, 1, 1, 5, 300, 256}, .dtype = DType::f16}, false, 9, true},
        Choice{{.shape = {1, 1, 1, 5, 300, 272}, .dtype = DType::f16}, false, 9},
        Choice{{.shape = {1, 1, 1, 5, 300, 64}, .dtype = DType::f32}, true, 9},
        Choice{{.shape = {1, 1, 1, 5, 300, 64}, .dtype = DType::f16}, false, 10},
        // A block has 99 KiB, of which its rows and three chunks of keys take a chunk's 16 each.
        Choice{{.shape = {1, 1, 1, 5, 300, 192}, .dtype = DType::f16}, false, 12},
        Choice{{.shape = {1, 1, 1, 5, 300, 208}, .dtype = DType::f16}, true, 12}}) {
    Bench bench(1, 0, c.major);
    const Oracle oracle(c.description);
    INFO(oracle.text());
    const uint64_t gemms = emulation::counters().gemms;
    const uint64_t wgmma = emulation::launches_of("WgmmaProduct");
    HeadRun(oracle, *bench.backend, 0, 0).norms(iota(5));
    CHECK((emulation::counters().gemms > gemms) == c.gemms);
    CHECK((emulation::launches_of("WgmmaProduct") > wgmma) == c.wgmma);
  }
}

}  // namespace attnscope::test
