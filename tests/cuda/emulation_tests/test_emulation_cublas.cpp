// The emulated cuBLAS against products in double.
#include <cmath>
#include <random>

#include "cublas_v2.h"
#include "device_intrinsics.h"
#include "tests/cuda/emulation_tests/emulation_helpers.h"

namespace attnscope::test {
namespace {

struct Shape {
  int m, n, k, batches;
  bool a_transposed, b_transposed;
};

constexpr int kPadding = 3;  // of the leading dimensions
constexpr float kAlpha = 0.5f, kBeta = 2.0f;

int columns_of(bool transposed, int rows, int columns) { return transposed ? rows : columns; }
int leading_of(bool transposed, int rows, int columns) {
  return (transposed ? columns : rows) + kPadding;
}

// Element (row, column) of op(X).
float at(const std::vector<float>& x, long stride, int leading, bool transposed, int batch, int row,
         int column) {
  return x[static_cast<std::size_t>(
      batch * stride + (transposed ? row * leading + column : column * leading + row))];
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    // Representable in all three formats.
    value = cuda::from_bfloat_bits(cuda::to_bfloat_bits(normal(random)));
  }
  return values;
}

template <class T>
std::vector<T> in_format(const std::vector<float>& values, cudaDataType type) {
  std::vector<T> stored(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    stored[i] = static_cast<T>(type == CUDA_R_16F    ? cuda::to_half_bits(values[i])
                               : type == CUDA_R_16BF ? cuda::to_bfloat_bits(values[i])
                                                     : values[i]);
  }
  return stored;
}

template <class T>
double worst_error(const Shape& shape, cudaDataType type) {
  const int lda = leading_of(shape.a_transposed, shape.m, shape.k);
  const int ldb = leading_of(shape.b_transposed, shape.k, shape.n);
  const int ldc = shape.m + kPadding;
  const long stride_a = long{lda} * columns_of(shape.a_transposed, shape.m, shape.k);
  const long stride_b = long{ldb} * columns_of(shape.b_transposed, shape.k, shape.n);
  const long stride_c = long{ldc} * shape.n;
  const auto batches = static_cast<std::size_t>(shape.batches);
  const std::vector<float> a = random_values(static_cast<std::size_t>(stride_a) * batches, 1);
  const std::vector<float> b = random_values(static_cast<std::size_t>(stride_b) * batches, 2);
  const std::vector<float> c = random_values(static_cast<std::size_t>(stride_c) * batches, 3);
  const DeviceArray<T> device_a(in_format<T>(a, type)), device_b(in_format<T>(b, type));
  const DeviceArray<float> device_c(c);
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGemmStridedBatchedEx(
              handle, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
              shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, shape.m, shape.n, shape.k, &kAlpha,
              device_a.data(), type, lda, stride_a, device_b.data(), type, ldb, stride_b, &kBeta,
              device_c.data(), CUDA_R_32F, ldc, stride_c, shape.batches, CUBLAS_COMPUTE_32F,
              CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  const std::vector<float> got = device_c.read();
  REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  double worst = 0;
  for (int batch = 0; batch < shape.batches; ++batch) {
    for (int j = 0; j < shape.n; ++j) {
      for (int i = 0; i < ldc; ++i) {
        const auto index = static_cast<std::size_t>(batch * stride_c + j * ldc + i);
        double want = c[index];
        if (i < shape.m) {
          want *= kBeta;
          for (int p = 0; p < shape.k; ++p) {
            want += double{kAlpha} * at(a, stride_a, lda, shape.a_transposed, batch, i, p) *
                    at(b, stride_b, ldb, shape.b_transposed, batch, p, j);
          }
        }
        const double error = std::abs(got[index] - want);
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
    }
  }
  return worst;
}

TEST_CASE_METHOD(FreshDevice, "cuBLAS multiplies batches of every format and orientation") {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const Shape shape{17, 9, 33, 2, a_transposed, b_transposed};
      CAPTURE(a_transposed, b_transposed);
      // 33 terms of about 1, each rounded at sums of up to about 32.
      CHECK(worst_error<float>(shape, CUDA_R_32F) < 33 * 2e-6);
      CHECK(worst_error<unsigned short>(shape, CUDA_R_16F) < 33 * 2e-6);
      CHECK(worst_error<unsigned short>(shape, CUDA_R_16BF) < 33 * 2e-6);
    }
  }
  CHECK(cuda::emulation::counters().gemms == 12);
}

TEST_CASE_METHOD(FreshDevice,
                 "cuBLAS rounds floats to TF32 where it is asked to and the device can") {
  // One more than 10 bits of mantissa, half of it, and what ends with the tenth.
  const std::vector<float> values{1 + 0x1p-11f, 1 + 0x1p-12f, 1 + 0x1p-10f, 3 * 0x1p-149f};
  struct Way {
    int major;
    cublasComputeType_t compute;
    std::vector<float> products;
  };
  for (const Way& way : {Way{8, CUBLAS_COMPUTE_32F, values},
                         Way{8, CUBLAS_COMPUTE_32F_FAST_TF32, {1 + 0x1p-10f, 1, 1 + 0x1p-10f, 0}},
                         Way{7, CUBLAS_COMPUTE_32F_FAST_TF32, values}}) {
    CAPTURE(way.major, way.compute);
    cuda::emulation::Device device;
    device.major = way.major;
    cuda::emulation::set_devices({device});
    cublasHandle_t handle = nullptr;
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    const DeviceArray<float> a(values), b(std::vector<float>{1}), c(std::vector<float>(4));
    const float one = 1, zero = 0;
    REQUIRE(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 1, 1, &one, a.data(),
                                       CUDA_R_32F, 4, 0, b.data(), CUDA_R_32F, 1, 0, &zero,
                                       c.data(), CUDA_R_32F, 4, 0, 1, way.compute,
                                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    CHECK(c.read() == way.products);
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  }
}

TEST_CASE_METHOD(FreshDevice, "cuBLAS refuses what it cannot do") {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> x(std::vector<float>(16, 1.0f));
  const float one = 1, zero = 0;
  const auto multiply = [&](int m, int lda, cudaDataType type, cublasComputeType_t compute) {
    return cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 2, 2, &one, x.data(),
                                      type, lda, 0, x.data(), type, 2, 0, &zero, x.data(),
                                      CUDA_R_32F, m, 0, 1, compute, CUBLAS_GEMM_DEFAULT);
  };
  CHECK(multiply(4, 3, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(4, 4, CUDA_R_64F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(multiply(4, 4, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_16BF) == CUBLAS_STATUS_NOT_SUPPORTED);
  cuda::emulation::fail_gemm(2, CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(multiply(4, 4, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(multiply(4, 4, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_EXECUTION_FAILED);
  const std::string words = last_words([&] { multiply(16, 16, CUDA_R_32F, CUBLAS_COMPUTE_32F); });
  CHECK(words.find("A reaches beyond its allocation") != std::string::npos);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cuda::emulation::counters().cublas_handles == 0);
}

}  // namespace
}  // namespace attnscope::test
