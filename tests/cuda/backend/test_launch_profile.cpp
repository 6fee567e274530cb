// The profile of launches: their time and work. On the emulation, which counts what it does.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/reduce/reduction_stream.h"
#include "core/stream/device_facet.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/plans/mask_tiles.h"
#include "kernels/cuda/host/profile/launch_work.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

std::unique_ptr<TileBackend> backend_on(int major, bool profile, size_t devices = 1) {
  emulation::reset();
  emulation::Device device;
  device.major = major;
  device.minor = 0;
  emulation::set_devices(std::vector<emulation::Device>(devices, device));
  CudaModuleOptions options;
  options.profile = profile;
  options.fallback = make_cpu_backend({.threads = 1});
  return make_device_backend(options);
}

AttentionCase case_of(const char* mask) {
  return {.shape = {1, 2, 1, 300, 1500, 64}, .dtype = DType::bf16, .mask = mask, .value_width = 64};
}

/// All weights of a head.
void emit_head(const Oracle& oracle, const TileBackend& backend, int64_t head = 0) {
  const HeadRun run(oracle, backend, 0, head);
  GuardedTile tile(300, 1500, 1500, Encoding::f16_scaled);
  run.emit_panel(iota(300), {0, 1500}, tile);
}

/// The sum of the profiles of all kernels whose names begin with `kernel`.
LaunchProfile sum_of(const std::vector<LaunchProfile>& profiles, const std::string& kernel) {
  LaunchProfile sum;
  for (const LaunchProfile& profile : profiles) {
    if (profile.kernel.rfind(kernel, 0) != 0) continue;
    if (sum.launches == 0) {
      sum = profile;
      continue;
    }
    sum.launches += profile.launches;
    sum.seconds += profile.seconds;
    sum.flops += profile.flops;
    sum.bytes += profile.bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE("every launch and every copied byte is in the profile, and took time") {
  const Oracle oracle(case_of("none"));
  for (const int major : {7, 8}) {
    const auto backend = backend_on(major, true);
    CHECK(backend->device()->launch_profile().empty());
    const emulation::Counters before = emulation::counters();
    emit_head(oracle, *backend);
    const emulation::Counters after = emulation::counters();
    const auto profiles = backend->device()->launch_profile();
    uint64_t launches = 0;
    for (const LaunchProfile& profile : profiles) {
      INFO(profile.kernel);
      CHECK(profile.device == "0 Emulated device");
      CHECK(profile.multiprocessors == 4);
      CHECK(profile.seconds > 0);
      CHECK(profile.bytes > 0);
      if (profile.has_shape()) launches += static_cast<uint64_t>(profile.launches);
    }
    CHECK(launches == after.launches - before.launches);
    const auto gemms = sum_of(profiles, "queries times keys");
    CHECK(static_cast<uint64_t>(gemms.launches) == after.gemms - before.gemms);
    CHECK((gemms.launches > 0) == (major == 7));
    CHECK(sum_of(profiles, "copy to the host").bytes ==
          static_cast<double>(after.bytes_to_host - before.bytes_to_host));
    CHECK(sum_of(profiles, "copy to the device").bytes ==
          static_cast<double>(after.bytes_to_device - before.bytes_to_device));
    CHECK(std::is_sorted(profiles.begin(), profiles.end(),
                         [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
  }
}

TEST_CASE("kernels that multiply have the products' flops, others none") {
  const Oracle oracle(case_of("none"));
  const double flops = 2.0 * 300 * 1500 * 64;
  {
    const auto backend = backend_on(8, true);
    emit_head(oracle, *backend);
    const auto profiles = backend->device()->launch_profile();
    for (const char* kernel : {"row sums", "entries"}) {
      const LaunchProfile profile = sum_of(profiles, kernel);
      INFO(kernel);
      CHECK(profile.product == "mma");
      CHECK(profile.flops == flops);
      CHECK(profile.threads == cuda::kThreads);
      CHECK(profile.registers == 64);
      CHECK(profile.resident_blocks > 0);
      CHECK(profile.occupancy == Approx(profile.resident_blocks * cuda::kThreads / 2048.0));
    }
    // 3 tiles of rows, 2 segments of keys on 4 multiprocessors.
    const LaunchProfile sums = sum_of(profiles, "row sums");
    CHECK(sums.grid == std::array<int64_t, 3>{3, 2, 1});
    CHECK(sums.splits == 2);
    CHECK(sums.fills_device());
    CHECK(sums.bytes == (300 + 1500) * 64 * 2 + 2 * 300 * sizeof(cuda::RowPart));
    const LaunchProfile entries = sum_of(profiles, "entries");
    CHECK(entries.bytes > 300 * 1500 * 2);
    CHECK(sum_of(profiles, "combine rows").flops == 0);
    // A warp a row, four of them a block.
    CHECK(sum_of(profiles, "combine rows").grid == std::array<int64_t, 3>{75, 1, 1});
    CHECK(sum_of(profiles, "combine rows").fills_device());
  }
  {
    const auto backend = backend_on(8, true);
    HeadRun(oracle, *backend, 0, 0).norms(iota(12));
    const auto profiles = backend->device()->launch_profile();
    // One tile of rows with two segments on 4 multiprocessors.
    CHECK_FALSE(sum_of(profiles, "row sums").fills_device());
    CHECK_FALSE(sum_of(profiles, "combine rows").fills_device());
  }
  const auto backend = backend_on(7, true);
  emit_head(oracle, *backend);
  const auto profiles = backend->device()->launch_profile();
  CHECK(sum_of(profiles, "row sums").product == "cublas");
  CHECK(sum_of(profiles, "row sums").flops == 0);
  // cuBLAS multiplies whole tiles.
  CHECK(sum_of(profiles, "queries times keys").flops >= flops);
}

TEST_CASE("tiles that the mask leaves empty are not counted") {
  const auto flops_of = [](const char* mask) {
    const Oracle oracle(case_of(mask));
    const auto backend = backend_on(8, true);
    emit_head(oracle, *backend);
    return sum_of(backend->device()->launch_profile(), "row sums").flops / (2 * 64);
  };
  CHECK(flops_of("causal") < flops_of("none"));
  cuda::MaskTiles mask;
  mask.row_tiles = 2;
  mask.first_tile = 3;
  mask.end_tile = 5;
  mask.tiles = {cuda::kFullTile, cuda::kEmptyTile, cuda::kMixedTile, cuda::kMixedTile + 1};
  const auto columns = mask.columns(128 + 40);
  REQUIRE(columns.size() == 2);
  CHECK(columns[0].rows == 168);
  CHECK(columns[0].bytes == 2048);
  CHECK(columns[1].rows == 40);
  CHECK(columns[1].bytes == 2048);
  // A range that begins with the mask's first tile, and ends with 10 keys of the last.
  cuda::EmitArgs args;
  args.call.rows = 168;
  args.call.row_tiles = 2;
  args.call.num_keys = 4 * 128 + 10;
  args.call.key_tiles = 5;
  args.call.mask.first = 3;
  args.first_tile = 3;
  args.end_tile = 5;
  const cuda::CallFacts facts{"mma", false, 64, 128, columns};
  CHECK(cuda::entries_work(args, 1, facts).flops == 2.0 * 64 * (168 * 128 + 40 * 10));
}

TEST_CASE("reductions and outputs are timed too") {
  AttentionCase description = case_of("none");
  const Oracle oracle(description);
  const auto backend = backend_on(8, true);
  ReductionRequest request;
  request.rows = request.entropy = request.columns = true;
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals&) override {}
  } sink;
  const ReductionJob job{{&oracle.problem(), 0, 1, {0, 300}, {}, {0, 1500}}, request};
  MemoryBudget budget(int64_t{1} << 30);
  ReductionStream stream(*backend, budget);
  REQUIRE(stream.run({&job, 1}, plan_reductions({&job, 1}, *backend, int64_t{1} << 30, 1), sink));
  std::vector<float> outputs(300 * 64);
  HeadRun(oracle, *backend, 0, 0).outputs(iota(300), {outputs.data(), 64});
  const auto profiles = backend->device()->launch_profile();
  for (const char* kernel : {"reductions", "row sums, moments", "combine tiles", "add blocks",
                             "weights times values", "clear"}) {
    INFO(kernel);
    CHECK(sum_of(profiles, kernel).launches > 0);
  }
  CHECK(sum_of(profiles, "weights times values").flops >= 2.0 * 300 * 1500 * 64);
}

TEST_CASE("row sums by wgmma are told from reductions by mma") {
  const Oracle oracle(case_of("none"));
  const auto backend = backend_on(9, true);
  ReductionRequest request;
  request.columns = true;
  class Sink : public ReductionSink {
   public:
    void head(int64_t, const HeadTotals&) override {}
  } sink;
  const ReductionJob job{{&oracle.problem(), 0, 0, {0, 300}, {}, {0, 1500}}, request};
  MemoryBudget budget(int64_t{1} << 30);
  ReductionStream stream(*backend, budget);
  REQUIRE(stream.run({&job, 1}, plan_reductions({&job, 1}, *backend, int64_t{1} << 30, 1), sink));
  const auto profiles = backend->device()->launch_profile();
  CHECK(sum_of(profiles, "row sums").product == "wgmma");
  CHECK(sum_of(profiles, "row sums").flops == 2.0 * 300 * 1500 * 64);
  CHECK(sum_of(profiles, "reductions").product == "mma");
  CHECK(sum_of(profiles, "reductions").flops == 2.0 * 300 * 1500 * 64);
}

TEST_CASE("without a profile no event is made for one, and with one all are given back") {
  const Oracle oracle(case_of("none"));
  size_t events[2];
  for (const bool profile : {false, true}) {
    {
      const auto backend = backend_on(8, profile);
      emit_head(oracle, *backend);
      events[profile ? 1 : 0] = emulation::counters().events;
      CHECK(backend->device()->launch_profile().empty() == !profile);
    }
    CHECK(emulation::counters().events == 0);
  }
  // Two of the buffers of keys, two of those of entries.
  CHECK(events[0] == 4);
  CHECK(events[1] > 4);
}

TEST_CASE("each device has its own lines") {
  const Oracle oracle(case_of("none"));
  const auto backend = backend_on(8, true, 2);
  emit_head(oracle, *backend, 0);
  emit_head(oracle, *backend, 1);
  std::vector<std::string> devices;
  for (const LaunchProfile& profile : backend->device()->launch_profile()) {
    if (profile.kernel == "row sums") devices.push_back(profile.device);
  }
  std::sort(devices.begin(), devices.end());
  CHECK(devices == std::vector<std::string>{"0 Emulated device", "1 Emulated device"});
}

}  // namespace attnscope::test
