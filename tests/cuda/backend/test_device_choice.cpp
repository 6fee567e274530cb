// Which kernels compute, and TF32. On the emulation.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/stream/value_panels.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/devices/kernel_choice.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

struct Chosen {
  std::vector<std::string> notices;
  std::unique_ptr<TileBackend> backend;

  Chosen(int major, DeviceKernels kernels, bool tf32 = false) {
    emulation::reset();
    emulation::Device device;
    device.major = major;
    device.minor = 0;
    emulation::set_devices({device});
    CudaModuleOptions options;
    options.kernels = kernels;
    options.tf32 = tf32;
    options.fallback = make_cpu_backend({.threads = 1});
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    backend = make_device_backend(options);
  }
};

Oracle oracle_of(DType dtype) {
  return Oracle({.shape = {1, 1, 1, 140, 300, 64}, .dtype = dtype, .value_width = 64});
}

std::vector<double> entries_of(const Oracle& oracle, const TileBackend& backend,
                               Quantity quantity) {
  const HeadRun run(oracle, backend, 0, 0);
  GuardedTile tile(140, 300, 300, Encoding::f32);
  const std::vector<RowNorm> norms =
      quantity == Quantity::weights ? run.norms(iota(140)) : std::vector<RowNorm>();
  run.emit(iota(140), norms, {0, 300}, quantity, tile);
  std::vector<double> entries;
  for (int64_t row = 0; row < 140; ++row) {
    for (int64_t key = 0; key < 300; ++key) entries.push_back(tile.value(row, key));
  }
  return entries;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("the kernels that were chosen compute, and name the backend") {
  const Oracle oracle = oracle_of(DType::f16);
  struct Case {
    int major;
    DeviceKernels kernels;
    const char* name;
  };
  for (const Case& c :
       {Case{9, DeviceKernels::automatic, "cuda-wgmma"},
        Case{9, DeviceKernels::wgmma, "cuda-wgmma"}, Case{9, DeviceKernels::mma, "cuda-mma"},
        Case{9, DeviceKernels::cublas, "cuda-cublas"},
        Case{8, DeviceKernels::automatic, "cuda-mma"}, Case{8, DeviceKernels::mma, "cuda-mma"},
        Case{8, DeviceKernels::cublas, "cuda-cublas"},
        Case{7, DeviceKernels::automatic, "cuda-cublas"},
        Case{7, DeviceKernels::cublas, "cuda-cublas"}}) {
    const Chosen chosen(c.major, c.kernels);
    INFO(c.major << " " << c.name);
    CHECK(chosen.backend->name() == c.name);
    CHECK(chosen.backend->name_for(oracle.problem()) == c.name);
    const uint64_t gemms = emulation::counters().gemms;
    HeadRun(oracle, *chosen.backend, 0, 0).norms(iota(5));
    CHECK((emulation::counters().gemms > gemms) == (c.name == std::string("cuda-cublas")));
  }
}

TEST_CASE("kernels that a device or a build does not have are refused") {
  const auto refusal = [](int major, DeviceKernels kernels) -> std::string {
    try {
      const Chosen chosen(major, kernels);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unavailable);
      return error.what();
    }
    return "taken";
  };
  CHECK(refusal(7, DeviceKernels::mma) ==
        "backend cuda-mma: Emulated device has compute capability 7.0, the kernels need 8.0");
  CHECK(refusal(8, DeviceKernels::wgmma) ==
        "backend cuda-wgmma: Emulated device has compute capability 8.0, the kernels need 9.0");
  // Nothing of a device that was refused is kept.
  CHECK(emulation::counters().device_allocations == 0);
  CHECK(emulation::counters().streams == 0);
}

TEST_CASE("what a build lacks for a device is said, and nothing else") {
  CHECK(cuda::missing_kernels("H", 90, false, true) ==
        "cuda: this build has no kernels for the tensor cores of H that use wgmma "
        "(CMAKE_CUDA_ARCHITECTURES was without 90a): slower ones are used");
  for (const int capability : {80, 89, 90, 120}) {
    CHECK(cuda::missing_kernels("D", capability, true, true).empty());
    CHECK(cuda::missing_kernels("D", capability, false, false) ==
          "cuda: this build has no kernels for the tensor cores of D (it was made without CuTe's "
          "headers): cuBLAS multiplies");
    CHECK(cuda::missing_kernels("D", capability, false, true).empty() == (capability != 90));
  }
  CHECK(cuda::missing_kernels("T", 75, false, false).empty());
}

TEST_CASE("TF32 multiplies float32 tensors with 10 bits, and nothing else") {
  const Oracle oracle = oracle_of(DType::f32);
  const auto exact =
      entries_of(oracle, *Chosen(8, DeviceKernels::automatic).backend, Quantity::logits);
  const Chosen rounded(8, DeviceKernels::automatic, true);
  CHECK(rounded.backend->name() == "cuda-tf32");
  CHECK(rounded.backend->name_for(oracle.problem()) == "cuda-tf32");
  const auto logits = entries_of(oracle, *rounded.backend, Quantity::logits);
  const double difference = largest_difference(logits, exact);
  CHECK(difference < 2e-2);
  // Float32 sums of 64 terms differ by far less.
  CHECK(difference > 1e-5);
  const auto largest = [](const std::vector<double>& values) {
    return largest_difference(values, std::vector<double>(values.size()));
  };
  CHECK(largest(exact) > 1);
  CHECK(largest(logits) > 1);
  const auto weights = entries_of(oracle, *rounded.backend, Quantity::weights);
  for (int64_t i = 0; i < 140; i += 9) {
    const Oracle::Row row = oracle.row(0, 0, i);
    for (size_t j = 0; j < 300; ++j) {
      const double weight = weights[static_cast<size_t>(i) * 300 + j];
      REQUIRE(std::fabs(weight - row.weights[j]) <= 1e-3 / 300 + 2e-2 * row.weights[j]);
    }
  }
  CHECK(rounded.notices.empty());
}

TEST_CASE("outputs of TF32 maps are sums of float32 values") {
  // V's bits beyond TF32's tenth count: rounded, outputs would be off by up to 2^-11 of them.
  const Oracle oracle = oracle_of(DType::f32);
  const Chosen rounded(8, DeviceKernels::automatic, true);
  std::vector<float> outputs(140 * 64);
  HeadRun(oracle, *rounded.backend, 0, 0).outputs(iota(140), {outputs.data(), 64});
  const auto weights = entries_of(oracle, *rounded.backend, Quantity::weights);
  const BoundValues values(oracle.problem(), 0, 0);
  const ValuePanels panels = values.panels();
  for (size_t row = 0; row < 140; row += 13) {
    for (size_t channel = 0; channel < 64; ++channel) {
      double sum = 0;
      double magnitude = 0;
      for (size_t key = 0; key < 300; ++key) {
        const double value = panels.at(static_cast<int64_t>(key), static_cast<int64_t>(channel));
        sum += weights[row * 300 + key] * value;
        magnitude += weights[row * 300 + key] * std::fabs(value);
      }
      REQUIRE(std::fabs(outputs[row * 64 + channel] - sum) <= 3e-5 * magnitude);
    }
  }
}

TEST_CASE("where TF32 changes nothing, bits are the same and a note says so once") {
  const Oracle oracle = oracle_of(DType::bf16);
  const auto plain =
      entries_of(oracle, *Chosen(8, DeviceKernels::automatic).backend, Quantity::weights);
  const Chosen tf32(8, DeviceKernels::automatic, true);
  CHECK(tf32.backend->name_for(oracle.problem()) == "cuda-mma");
  CHECK(tf32.notices.empty());
  CHECK(entries_of(oracle, *tf32.backend, Quantity::weights) == plain);
  CHECK(entries_of(oracle, *tf32.backend, Quantity::weights) == plain);
  CHECK(tf32.notices == std::vector<std::string>{"cuda: --tf32 changes nothing for bf16 tensors"});

  const Oracle floats = oracle_of(DType::f32);
  const auto before =
      entries_of(floats, *Chosen(7, DeviceKernels::automatic).backend, Quantity::logits);
  const Chosen old(7, DeviceKernels::automatic, true);
  CHECK(old.backend->name() == "cuda-cublas");
  CHECK(entries_of(floats, *old.backend, Quantity::logits) == before);
  CHECK(old.notices == std::vector<std::string>{
                           "cuda: Emulated device has no TF32: float32 tensors are multiplied as "
                           "they are"});
}

}  // namespace attnscope::test
