// Row sums of the CUDA backend: tiles in which all entries count are summed two at a time, others
// one by one, and nobody can tell which. On the emulation.
#include <cmath>
#include <numeric>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/kernel/polynomial_power.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

/// Of compute capability 9.0, with wgmma, or 8.0, with mma.
std::unique_ptr<TileBackend> backend_on(int major) {
  cuda::emulation::reset();
  cuda::emulation::Device device;
  device.major = major;
  device.minor = 0;
  if (major == 9) {
    device.shared_per_block_optin = 227 << 10;
    device.shared_per_multiprocessor = 228 << 10;
  }
  cuda::emulation::set_devices({device});
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [](const std::string& line) { FAIL(line); };
  return make_device_backend(options);
}

/// Numbers that are all alike but for one NaN.
HeadTensor tensor_with_nan(int64_t tokens, int64_t channels, int64_t nan_token) {
  std::vector<bf16> values(static_cast<size_t>(tokens * channels), to_bf16(0.25f));
  if (nan_token >= 0) values[static_cast<size_t>(nan_token * channels)] = to_bf16(std::nanf(""));
  const auto* const first = reinterpret_cast<const std::byte*>(values.data());
  std::vector<std::byte> bytes(first, first + values.size() * sizeof(bf16));
  return HeadTensor(
      std::make_shared<MemoryTensor>("numbers", DType::bf16, std::vector<int64_t>{tokens, channels},
                                     std::move(bytes)),
      Layout::sd);
}

}  // namespace

TEST_CASE("a row's sums have the same bits whatever the mask leaves of its neighbours") {
  // Of the last row of a tile the causal mask leaves whole tiles: those on the diagonal are whole
  // where the row is asked for alone, and mixed where its neighbours are, too. Heads of one chunk
  // of channels take the polynomial.
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    for (const int64_t channels : {64, 80, 192}) {
      for (const double amplitude : {1.0, 6.0}) {
        const Oracle oracle({.shape = {1, 1, 1, 1300, 1300, channels},
                             .dtype = DType::bf16,
                             .mask = "causal",
                             .amplitude = amplitude,
                             .scale = amplitude > 1 ? 0.2 : 0});
        INFO(oracle.text() << " on " << major << ".0");
        const HeadRun run(oracle, *backend, 0, 0);
        const std::vector<RowNorm> all = run.norms(iota(1300));
        for (int64_t row = 127; row < 1300; row += 128) {
          const RowNorm alone = run.norms({row})[0];
          const RowNorm& among_others = all[static_cast<size_t>(row)];
          CHECK(alone.sum == among_others.sum);
          CHECK(alone.exponent == among_others.exponent);
        }
      }
    }
  }
}

TEST_CASE("a key that is no number is refused, wherever it stands") {
  for (const int major : {8, 9}) {
    const auto backend = backend_on(major);
    for (const int64_t key : {0, 1, 2, 5, 40, 41, 255, 300}) {
      AttentionProblem::Parts parts;
      parts.q = tensor_with_nan(3, 64, -1);
      parts.k = tensor_with_nan(301, 64, key);
      parts.id.kind = CallKind::cross;
      parts.name = "numbers";
      const AttentionProblem problem = AttentionProblem::make(std::move(parts));
      const auto head = backend->bind(problem, 0, 0);
      std::vector<std::byte> rows(static_cast<size_t>(3 * problem.q().row_bytes()));
      problem.q().read_rows(0, 0, {0, 3}, rows.data());
      const std::vector<int64_t> index = iota(3);
      std::vector<RowNorm> norms(3);
      std::vector<std::byte> workspace(
          static_cast<size_t>(backend->workspace_bytes(problem, 3, 301, true)));
      INFO("key " << key << " on " << major << ".0");
      CHECK_THROWS_AS(head->row_norms({rows.data(), index}, norms, workspace), Error);
    }
  }
}

TEST_CASE("the polynomial's powers of two are as exact as is said of them") {
  double worst = 0;
  for (double x = -126; x <= 127; x += 1.0 / 1024 + 1e-6) {
    const auto at = static_cast<float>(x);
    const cuda::Power power = cuda::polynomial_power(at);
    const double got = static_cast<double>(power.fraction) * static_cast<double>(power.whole);
    worst = std::max(worst, std::fabs(got / std::exp2(static_cast<double>(at)) - 1));
    CHECK(power.x == at);
  }
  CHECK(worst < 4e-6);
  CHECK(worst > 1e-7);  // it is the polynomial
  for (const float whole : {-126.0f, -1.0f, 0.0f, 3.0f, 127.0f}) {
    const cuda::Power power = cuda::polynomial_power(whole);
    CHECK(power.fraction * power.whole == std::exp2(whole));
  }
  for (const float far : {-127.0f, -3e38f, -INFINITY}) {
    const cuda::Power power = cuda::polynomial_power(far);
    CHECK(power.fraction * power.whole == 0x1p-126f);
  }
  const cuda::Power nan = cuda::polynomial_power(NAN);
  CHECK(std::isnan(nan.fraction * nan.whole));
}

}  // namespace attnscope::test
