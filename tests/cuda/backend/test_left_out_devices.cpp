// Devices of which something cannot be had: they are left out, or the CPU does a part, and it is
// said. On the emulation.
#include <cmath>

#include "core/base/error.h"
#include "core/reduce/reduction_stream.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

struct Opened {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;

  explicit Opened(const std::vector<emulation::Device>& devices,
                  const std::function<void()>& prepare = {}) {
    emulation::reset();
    emulation::set_devices(devices);
    if (prepare) prepare();
    CudaModuleOptions options;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
  }
};

emulation::Device device_of(const char* name, int major, int minor) {
  emulation::Device device;
  device.name = name;
  device.major = major;
  device.minor = minor;
  return device;
}

const AttentionCase kSmall{.shape = {1, 1, 1, 200, 700, 64}, .dtype = DType::f16};

/// Of emitted weights and of the entropy of rows, against the definition.
void check_maps(const TileBackend& backend) {
  const Oracle oracle(kSmall);
  const HeadRun run(oracle, backend, 0, 0);
  GuardedTile tile(200, 700, 700, Encoding::f32);
  run.emit_panel(iota(200), {0, 700}, tile);
  double entropy = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const Oracle::Row row = oracle.row(0, 0, i);
    for (size_t j = 0; j < 700; ++j) {
      const double weight = row.weights[j];
      if (weight > 0) entropy -= weight * std::log(weight) / 200;
      REQUIRE(std::fabs(tile.value(i, static_cast<int64_t>(j)) - weight) <=
              1e-3 / 700 + 2e-4 * weight);
    }
  }
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals& head_totals) override { totals = head_totals; }
    HeadTotals totals;
  };
  ReductionRequest request;
  request.rows = request.entropy = true;
  const ReductionJob job{{&oracle.problem(), 0, 0, {0, 200}, {}, {0, 700}}, request};
  Sink sink;
  MemoryBudget budget(int64_t{1} << 30);
  ReductionStream stream(backend, budget);
  REQUIRE(stream.run({&job, 1}, plan_reductions({&job, 1}, backend, int64_t{1} << 30, 1), sink));
  CHECK(entropy > 1);
  CHECK(sink.totals.mean(RowValue::entropy) == Approx(entropy).epsilon(1e-4));
}

}  // namespace

TEST_CASE("a device without memory is left out, and the others compute") {
  emulation::Device full = device_of("Full", 8, 0);
  full.memory_of_others = full.memory;
  const Opened opened({full, device_of("Free", 8, 0)});
  CHECK(opened.notices ==
        std::vector<std::string>{"cuda: device 0 is left out: backend cuda: no memory is free on "
                                 "device 0 (Full)"});
  CHECK(opened.backend->description() == "cuda (Free, 4 workers)");
  CHECK(opened.backend->workers() == 4);
  check_maps(*opened.backend);
}

TEST_CASE(
    "a device whose first maps fail is left out; where all are, the first one's fault is told") {
  const auto fails_once = [] {
    emulation::fail(emulation::Call::kLaunch, 1, cudaErrorNoKernelImageForDevice);
  };
  const Opened opened({device_of("Old", 8, 0), device_of("New", 8, 0)}, fails_once);
  REQUIRE(opened.notices.size() == 1);
  CHECK(opened.notices[0].find("cuda: device 0 is left out: cuda: placing rows: ") == 0);
  CHECK(opened.notices[0].find("cudaErrorNoKernelImageForDevice") != std::string::npos);
  CHECK(opened.backend->description() == "cuda (New, 4 workers)");
  check_maps(*opened.backend);

  std::vector<std::string> notices;
  emulation::reset();
  emulation::set_devices({device_of("One", 8, 0), device_of("Two", 8, 0)});
  emulation::fail(emulation::Call::kLaunch, 1, cudaErrorIllegalAddress,
                  emulation::Failure::kSticky);
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [&](const std::string& line) { notices.push_back(line); };
  try {
    make_device_backend(options);
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unavailable);
    CHECK(std::string(error.what()).find("cudaErrorIllegalAddress") != std::string::npos);
  }
  CHECK(notices.empty());
  emulation::reset();
}

TEST_CASE("kernels that one device lacks leave that one out") {
  emulation::reset();
  emulation::set_devices({device_of("Turing", 7, 5), device_of("Ampere", 8, 0)});
  std::vector<std::string> notices;
  CudaModuleOptions options;
  options.kernels = DeviceKernels::mma;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [&](const std::string& line) { notices.push_back(line); };
  const auto backend = make_device_backend(options);
  CHECK(notices ==
        std::vector<std::string>{"cuda: device 0 is left out: backend cuda-mma: Turing has compute "
                                 "capability 7.5, the kernels need 8.0"});
  CHECK(backend->name() == "cuda-mma");
  check_maps(*backend);
}

TEST_CASE("devices whose kernels are not the best ones' are left out, as their bits differ") {
  const auto hopper = [] {
    emulation::Device device = emulation::Device::of(9);
    device.name = "Hopper";
    return device;
  }();
  const std::vector<emulation::Device> devices{device_of("Ampere", 8, 0), hopper,
                                               device_of("Turing", 7, 5)};
  const Opened opened(devices);
  CHECK(opened.notices ==
        std::vector<std::string>{
            "cuda: device 0 (Ampere) is left out: it computes by cuda-mma, others by cuda-wgmma, "
            "whose bits differ (--backend cuda-mma takes all of them)",
            "cuda: device 2 (Turing) is left out: it computes by cuda-cublas, others by "
            "cuda-wgmma, whose bits differ (--backend cuda-cublas takes all of them)"});
  CHECK(opened.backend->name() == "cuda-wgmma");
  CHECK(opened.backend->description() == "cuda (Hopper, 4 workers)");
  check_maps(*opened.backend);

  emulation::reset();
  emulation::set_devices(devices);
  CudaModuleOptions options;
  options.kernels = DeviceKernels::cublas;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [](const std::string& line) { FAIL(line); };
  const auto all = make_device_backend(options);
  CHECK(all->name() == "cuda-cublas");
  CHECK(all->description() == "cuda (Ampere, Hopper, Turing, 12 workers)");
  emulation::reset();
}

TEST_CASE("where a block's shared memory is too small for reductions, the CPU makes them") {
  emulation::Device turing = device_of("Turing", 7, 5);
  turing.shared_per_block_optin = turing.shared_per_multiprocessor = 64 << 10;
  const Opened opened({turing});
  CHECK(opened.notices.empty());
  const uint64_t before = emulation::launches_of("sum_rows");
  check_maps(*opened.backend);
  CHECK(emulation::launches_of("sum_rows") > before);
  CHECK(emulation::launches_of("reduce_tiles") == 0);
  check_maps(*opened.backend);
  CHECK(opened.notices ==
        std::vector<std::string>{"cuda: Turing gives a block 64 KiB of shared memory, reductions "
                                 "need 69: they are computed on the CPU"});
}

}  // namespace attnscope::test
