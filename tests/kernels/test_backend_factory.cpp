#include <set>

#include "core/base/error.h"
#include "kernels/backend_factory.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/common/host_cores.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_ceilings.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "kernels/cuda_backend.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace attnscope {

TEST_CASE("backends are found by name, and a misspelt one gets a suggestion") {
  CHECK(parse_backend("auto") == BackendKind::automatic);
  CHECK(parse_backend("reference") == BackendKind::reference);
  CHECK(parse_backend("cpu") == BackendKind::cpu);
  CHECK(parse_backend("cpu-amx") == BackendKind::cpu_amx);
  CHECK(parse_backend("cpu-amx-fp16") == BackendKind::cpu_amx_fp16);
  CHECK(parse_backend("cpu-bf16") == BackendKind::cpu_bf16);
  CHECK(parse_backend("cpu-fma") == BackendKind::cpu_fma);
  CHECK(parse_backend("cuda") == BackendKind::cuda);
  CHECK(parse_backend("cuda-wgmma") == BackendKind::cuda_wgmma);
  CHECK(parse_backend("cuda-mma") == BackendKind::cuda_mma);
  CHECK(parse_backend("cuda-cublas") == BackendKind::cuda_cublas);
  CHECK(is_cuda(BackendKind::cuda_cublas));
  CHECK_FALSE(is_cuda(BackendKind::cpu));
  CHECK_FALSE(is_cuda(BackendKind::cpu_fma));
  try {
    parse_backend("referense");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(std::string(error.what()).find("did you mean reference?") != std::string::npos);
  }
}

TEST_CASE("a build without CUDA, and a machine without a device, say so") {
  if (cuda_state().usable) {
    test::skip_test("a CUDA device is usable here");
    return;
  }
  try {
    make_backend(BackendKind::cuda);
    FAIL("made");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unavailable);
    CHECK(std::string(error.what()).rfind("backend cuda: ", 0) == 0);
  }
}

TEST_CASE("backends say who they are and how many threads they want") {
  const auto automatic = make_backend(BackendKind::automatic);
  if (cuda_state().usable) {
    CHECK(automatic->name().substr(0, 4) == "cuda");
  } else {
    CHECK(automatic->name().substr(0, 3) == "cpu");
    CHECK(automatic->workers() == usable_cores());
  }
  const auto cpu = make_backend(BackendKind::cpu, {.threads = 3});
  CHECK(cpu->workers() == 3);
  CHECK(cpu->description().find("3 threads)") != std::string::npos);
  CHECK(make_backend(BackendKind::reference)->name() == "reference");
}

TEST_CASE("the CPU backend has several instruction sets to be tested") {
  std::set<std::string_view> names;
  for (const CpuKernels* kernels : available_cpu_kernels()) names.insert(kernels->isa);
  CHECK(names.size() == available_cpu_kernels().size());
  CHECK(&best_cpu_kernels() == available_cpu_kernels().front());
  if (best_cpu_kernels().bf16.softmax == nullptr) {
    WARN("this processor has no vdpbf16ps: bf16 dot products are tested by their emulation only");
  }
}

TEST_CASE("ceilings are measured") {
  const CpuCeilings ceilings = measure_cpu_ceilings(2, 0.02);
  CHECK(ceilings.threads == 2);
  CHECK(ceilings.isa == best_cpu_kernels().isa);
  CHECK(ceilings.fma_gflops_one_thread > 0.01);
  CHECK(ceilings.fma_gflops > 0.01);
  CHECK(ceilings.exp_gigaelements_one_thread > 0.0001);
  CHECK(ceilings.exp_gigaelements > 0.0001);
  CHECK((ceilings.tile_gflops > 0) == (best_cpu_kernels().tiles.spin != nullptr));
  CHECK((ceilings.table_exp_gigaelements > 0) == (ceilings.tile_gflops > 0));
  CHECK((ceilings.bf16_gflops > 0) == (best_cpu_kernels().bf16.spin != nullptr));
}

TEST_CASE("denormals are flushed only while asked for") {
  volatile float tiny = 0x1p-126f;
  volatile float half = 0.5f;
  REQUIRE(tiny * half > 0);
#if defined(__x86_64__) || defined(__aarch64__)
  {
    const FlushDenormals flush;
    const float product = tiny * half;
    CHECK(product == 0);
  }
#endif
  REQUIRE(tiny * half > 0);
}

}  // namespace attnscope
