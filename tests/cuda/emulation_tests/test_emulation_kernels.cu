// Kernels on the emulation: what the operations of device_intrinsics.h and tensor_core.h give, in
// an order that shows a missing wait.
#include <device_intrinsics.h>
#include <tensor_core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

#include "tests/cuda/emulation/address_sanitizer.h"
#include "tests/cuda/emulation_tests/emulation_helpers.h"

namespace attnscope::test {
namespace {

using namespace attnscope::cuda;

__global__ void sum_rows(const float* values, int columns, float* sums, double* double_sums) {
  const int row = static_cast<int>(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  float sum = 0;
  for (int c = lane; c < columns; c += 32) {
    sum += values[row * columns + c];
  }
  double double_sum = sum;
  for (int mask = 16; mask > 0; mask /= 2) {
    sum += shuffle_xor(sum, mask);
    double_sum += shuffle_xor(double_sum, mask);
  }
  if (lane == 0) {
    sums[row] = sum;
  }
  const double first = shuffle(double_sum + lane, 7);
  if (lane == 31) {
    double_sums[row] = first;
  }
}

TEST_CASE_METHOD(FreshDevice, "warps sum rows by shuffles") {
  constexpr int kRows = 24, kColumns = 100;
  std::vector<float> values(kRows * kColumns);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : values) {
    value = uniform(random);
  }
  const DeviceArray<float> in(values), sums{std::vector<float>(kRows)};
  const DeviceArray<double> double_sums{std::vector<double>(kRows)};
  REQUIRE(launch(&sum_rows, kRows / 8, 256, 0, in.data(), kColumns, sums.data(),
                 double_sums.data()) == cudaSuccess);
  const std::vector<float> got = sums.read();
  const std::vector<double> got_double = double_sums.read();
  for (int row = 0; row < kRows; ++row) {
    double want = 0;
    for (int c = 0; c < kColumns; ++c) {
      want += values[row * kColumns + c];
    }
    CHECK(std::abs(got[row] - want) < 1e-5);
    CHECK(std::abs(got_double[row] - (want + 7)) < 1e-5);
  }
  CHECK(cuda::emulation::launches_of("sum_rows") == 1);
  CHECK(cuda::emulation::launches_of(reinterpret_cast<const void*>(&sum_rows)) == 1);
}

// C[16·gridDim.y, 8·gridDim.x] = A·Bᵀ of K columns, rows of both staged through shared memory with
// the addresses of ldmatrix.
template <class Tag>
__global__ void multiply(const unsigned short* a, const unsigned short* b, int k, float* c) {
  auto* shared_a = reinterpret_cast<unsigned short*>(dynamic_shared_memory());
  unsigned short* shared_b = shared_a + 16 * 16;
  const int lane = static_cast<int>(threadIdx.x);
  const int m0 = static_cast<int>(blockIdx.y) * 16, n0 = static_cast<int>(blockIdx.x) * 8;
  float d[4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = lane; i < 16 * 2; i += 32) {
      copy_async_16(shared_a + i * 8, a + (m0 + i / 2) * k + k0 + i % 2 * 8, true);
    }
    // The second eight rows are none of b's.
    copy_async_16(shared_b + lane * 8, b + (n0 + lane / 2) * k + k0 + lane % 2 * 8, lane < 16);
    copy_async_commit();
    copy_async_wait<0>();
    block_barrier();
    unsigned fragment_a[4], fragment_b[4];
    load_matrix_x4(fragment_a, shared_a + (lane % 16) * 16 + lane / 16 * 8);
    load_matrix_x4(fragment_b, shared_b + (lane % 8 + lane / 16 * 8) * 16 + lane / 8 % 2 * 8);
    const unsigned b_of_product[2] = {fragment_b[0], fragment_b[1]};
    if (fragment_b[2] != 0 || fragment_b[3] != 0) {
      d[0] = NAN;
    }
    mma_16x8x16(d, fragment_a, b_of_product, Tag{});
    block_barrier();
  }
  const int n = static_cast<int>(gridDim.x) * 8;
  const int row = m0 + lane / 4, column = n0 + lane % 4 * 2;
  c[row * n + column] = d[0];
  c[row * n + column + 1] = d[1];
  c[(row + 8) * n + column] = d[2];
  c[(row + 8) * n + column + 1] = d[3];
}

template <class Tag, class ToBits, class FromBits>
double worst_product_error(ToBits to_bits, FromBits from_bits) {
  constexpr int kM = 48, kN = 24, kK = 64;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<unsigned short> a(kM * kK), b(kN * kK);
  for (auto* values : {&a, &b}) {
    for (unsigned short& value : *values) {
      value = to_bits(normal(random));
    }
  }
  const DeviceArray<unsigned short> device_a(a), device_b(b);
  const DeviceArray<float> device_c(std::vector<float>(kM * kN, NAN));
  REQUIRE(launch(&multiply<Tag>, dim3(kN / 8, kM / 16), 32, 16 * 16 * 4, device_a.data(),
                 device_b.data(), kK, device_c.data()) == cudaSuccess);
  const std::vector<float> c = device_c.read();
  double worst = 0;
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      double want = 0;
      for (int k = 0; k < kK; ++k) {
        want += static_cast<double>(from_bits(a[m * kK + k])) * from_bits(b[n * kK + k]);
      }
      const double error = std::abs(c[m * kN + n] - want);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

TEST_CASE_METHOD(FreshDevice, "a product of tensor cores is that of doubles") {
  // 64 terms of about 1 in float: half a unit in the last place of about 32 each.
  CHECK(worst_product_error<HalfTag>(to_half_bits, from_half_bits) < 64 * 2e-6);
  CHECK(worst_product_error<BfloatTag>(to_bfloat_bits, from_bfloat_bits) < 64 * 2e-6);
}

struct PipelineShape {
  int left;      // groups that may be under way when a thread goes on
  bool barrier;  // between the wait and the reads
};

// Two groups of copies; reads what another thread's first group brought.
__global__ void copy_through(const unsigned* in, unsigned* out, PipelineShape shape) {
  auto* shared = reinterpret_cast<unsigned*>(dynamic_shared_memory());
  const unsigned t = threadIdx.x, other = (t + 1) % blockDim.x;
  copy_async_16(shared + t * 4, in + t * 4, true);
  copy_async_commit();
  copy_async_16(shared + (blockDim.x + t) * 4, in, false);
  copy_async_commit();
  if (shape.left == 2) {
    copy_async_wait<2>();
  } else {
    copy_async_wait<1>();
  }
  if (shape.barrier) {
    block_barrier();
  }
  out[t] = shared[other * 4];
  copy_async_wait<0>();
  block_barrier();
  out[t] += shared[(blockDim.x + other) * 4 + 3];
}

TEST_CASE_METHOD(FreshDevice, "asynchronous copies arrive when they are waited for") {
  constexpr unsigned kThreads = 64;
  std::vector<unsigned> values(kThreads * 4);
  std::iota(values.begin(), values.end(), 100u);
  std::vector<unsigned> want(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    want[t] = values[(t + 1) % kThreads * 4];
  }
  const DeviceArray<unsigned> in(values), out(std::vector<unsigned>(kThreads, 0));
  const auto run = [&](PipelineShape shape) {
    REQUIRE(launch(&copy_through, 1, kThreads, kThreads * 32, in.data(), out.data(), shape) ==
            cudaSuccess);
    return out.read();
  };
  CHECK(run({1, true}) == want);
  // Without the wait or the barrier, threads see poison unless others happen to be further.
  const std::vector<unsigned> without_wait = run({2, true});
  CHECK(std::count(without_wait.begin(), without_wait.end(), 0xffffffff) > kThreads / 2);
  CHECK(run({1, false}) != want);
}

__global__ void forget_copies(const unsigned* in) {
  copy_async_16(dynamic_shared_memory() + threadIdx.x * 16, in, true);
  copy_async_commit();
}

__global__ void misaligned_copy(const unsigned* in) {
  copy_async_16(dynamic_shared_memory() + 8, in, true);
}

__global__ void uncommitted_copy(const unsigned* in) {
  copy_async_16(dynamic_shared_memory(), in, true);
  copy_async_wait<0>();
}

__global__ void write_beyond_shared(const unsigned*) { dynamic_shared_memory()[512] = 1; }

__global__ void early_end(const unsigned*) {
  if (threadIdx.x >= 32) {
    block_barrier();
  }
}

__global__ void split_barriers(const unsigned*) {
  if (threadIdx.x % 2 == 0) {
    block_barrier();
  } else {
    warp_barrier();
  }
}

__global__ void half_a_warp(const unsigned*) {
  if (threadIdx.x % 32 < 16) {
    shuffle_xor(1u, 1);
  }
}

__global__ void mixed_operations(const unsigned*) {
  if (threadIdx.x % 32 < 16) {
    shuffle_xor(1u, 1);
  } else {
    warp_any(true);
  }
}

TEST_CASE_METHOD(FreshDevice, "kernels whose order is undefined end the program") {
  const DeviceArray<unsigned> in(std::vector<unsigned>(4));
  const auto words = [&](void (*kernel)(const unsigned*)) {
    return last_words([&] {
      launch(kernel, 2, 64, 1024 / 2, in.data());
      cudaDeviceSynchronize();
    });
  };
  const auto contains = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(words(&forget_copies), "had not waited for"));
  CHECK(contains(words(&forget_copies), "forget_copies"));
  CHECK(contains(words(&misaligned_copy), "multiple of 16"));
  CHECK(contains(words(&uncommitted_copy), "not committed"));
  CHECK(
      contains(words(&early_end), "threads 0-31 have ended, threads 32-63 wait at block_barrier"));
  CHECK(contains(words(&split_barriers), "same barrier"));
  CHECK(contains(words(&half_a_warp), "threads 0-15 wait at shuffle, threads 16-31 have ended"));
  CHECK(contains(words(&mixed_operations), "at another operation"));
#if ATTNSCOPE_EMULATION_ASAN
  CHECK(contains(words(&write_beyond_shared), "use-after-poison"));
#else
  CHECK(contains(words(&write_beyond_shared), "shared memory were written"));
#endif
}

__global__ void convert(const float* in, unsigned short* halves, unsigned short* bfloats) {
  const unsigned i = threadIdx.x;
  halves[i] = to_half_bits(in[i]);
  bfloats[i] = to_bfloat_bits(in[i]);
}

TEST_CASE_METHOD(FreshDevice, "numbers are rounded to nearest even") {
  const std::vector<float> values = {
      1.0f,       -2.5f,     65504.0f,  65519.99f,       65520.0f,   INFINITY,    NAN,
      0x1p-14f,   0x1p-24f,  0x1p-25f,  0x1.000002p-25f, 0.0f,       -0.0f,       0x1.0020p0f,
      0x1.006p0f, 0x1.01p0f, 0x1.03p0f, 0x1.fffffep127f, 0x1.8p-24f, 0x1.ffep-15f};
  const auto count = static_cast<unsigned>(values.size());
  const DeviceArray<float> in(values);
  const DeviceArray<unsigned short> halves{std::vector<unsigned short>(count)},
      bfloats{std::vector<unsigned short>(count)};
  REQUIRE(launch(&convert, 1, count, 0, in.data(), halves.data(), bfloats.data()) == cudaSuccess);
  CHECK(halves.read() == std::vector<unsigned short>{0x3c00, 0xc100, 0x7bff, 0x7bff, 0x7c00,
                                                     0x7c00, 0x7fff, 0x0400, 0x0001, 0x0000,
                                                     0x0001, 0x0000, 0x8000, 0x3c00, 0x3c02,
                                                     0x3c04, 0x3c0c, 0x7c00, 0x0002, 0x0400});
  CHECK(bfloats.read() == std::vector<unsigned short>{0x3f80, 0xc020, 0x4780, 0x4780, 0x4780,
                                                      0x7f80, 0x7fff, 0x3880, 0x3380, 0x3300,
                                                      0x3300, 0x0000, 0x8000, 0x3f80, 0x3f80,
                                                      0x3f80, 0x3f82, 0x7f80, 0x33c0, 0x3880});
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    REQUIRE(to_half_bits(from_half_bits(static_cast<unsigned short>(bits))) == bits);
  }
  CHECK(exp2_fast(-3.0f) == 0.125f);
  CHECK(exp2_fast(-127.0f) == 0.0f);
  CHECK(log2_fast(8.0f) == 3.0f);
  CHECK(log2_fast(0x1p-130f) == -INFINITY);
}

__global__ void count_blocks(unsigned long long* sum, int* most, int* blocks, int* order) {
  const auto block =
      static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  const auto thread = static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y);
  add_atomic(sum, static_cast<unsigned long long>(block));
  max_atomic(most, block * 100 + thread);
  if (!warp_any(thread == 33)) {
    return;
  }
  if (thread == 32) {
    order[*blocks] = block;
    add_atomic(blocks, 1);
  }
}

TEST_CASE_METHOD(FreshDevice, "every block runs once, in no order to count on") {
  const DeviceArray<unsigned long long> sum({0});
  const DeviceArray<int> most({-1}), blocks({0}), order(std::vector<int>(30, -1));
  REQUIRE(launch(&count_blocks, dim3(5, 3, 2), dim3(16, 4), 0, sum.data(), most.data(),
                 blocks.data(), order.data()) == cudaSuccess);
  CHECK(sum.read()[0] == 64u * 30 * 29 / 2);
  CHECK(most.read()[0] == 29 * 100 + 63);
  std::vector<int> ran = order.read();
  CHECK(!std::is_sorted(ran.begin(), ran.end()));
  CHECK(!std::is_sorted(ran.rbegin(), ran.rend()));
  std::sort(ran.begin(), ran.end());
  for (int i = 0; i < 30; ++i) {
    CHECK(ran[i] == i);
  }
}

__global__ void many_products(float* out) {
  float d[4] = {};
  const unsigned a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
  const unsigned b[2] = {0x3c003c00, 0x3c003c00};
  for (int i = 0; i < 1000; ++i) {
    mma_16x8x16(d, a, b, HalfTag{});
  }
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

TEST_CASE_METHOD(FreshDevice, "a block does many products") {
  const DeviceArray<float> out(std::vector<float>(256));
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventRecord(begin) == cudaSuccess);
  REQUIRE(launch(&many_products, 1, 256, 0, out.data()) == cudaSuccess);
  REQUIRE(cudaEventRecord(end) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  float milliseconds = 0;
  REQUIRE(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  INFO("8 warps, 1000 products each: " << milliseconds << " ms");
  CHECK(out.read() == std::vector<float>(256, 64000.0f));
  CHECK(milliseconds > 0);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace
}  // namespace attnscope::test
