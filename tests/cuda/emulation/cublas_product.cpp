#include "tests/cuda/emulation/cublas_product.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/number_formats.h"
#include "tests/cuda/emulation/tensor_products.h"

namespace attnscope::cuda::emulation {
namespace {

float element(const unsigned char* data, cudaDataType type, bool tf32, long long index) {
  if (type == CUDA_R_32F) {
    float value = 0;
    std::memcpy(&value, data + index * 4, 4);
    return tf32 ? rounded_to_tf32(value) : value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, data + index * 2, 2);
  return type == CUDA_R_16F ? to_float<Half>(bits) : to_float<Bfloat>(bits);
}

std::atomic<bool> spoilt = false;
std::atomic<bool> ordered_by_shape = false;

/// The first of k that is summed: 0, or any where shapes choose the order.
std::size_t first_of_sum(const Product& product) {
  if (!ordered_by_shape || product.k == 0) return 0;
  const int shape = 7 * product.m + 5 * product.n + 3 * product.batches;
  return static_cast<std::size_t>(shape % product.k);
}

}  // namespace

void spoil_gemms(bool spoil) { spoilt = spoil; }
void order_gemms_by_shape(bool order) { ordered_by_shape = order; }

std::size_t element_bytes(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 0;
}

void multiply(const Product& product) {
  const auto m = static_cast<std::size_t>(product.m);
  const auto k = static_cast<std::size_t>(product.k);
  std::vector<float> a(m * k);  // [k, m], so that a column of c is summed at once
  std::vector<float> b(k);      // of a column of c
  std::vector<float> sums(m);
  const float factor = spoilt ? 1.01f * product.alpha : product.alpha;
  for (int batch = 0; batch < product.batches; ++batch) {
    for (std::size_t p = 0; p < k; ++p) {
      for (std::size_t i = 0; i < m; ++i) {
        a[p * m + i] =
            element(product.a.data, product.a.type, product.tf32,
                    batch * product.a.batch_step + static_cast<long long>(i) * product.a.row_step +
                        static_cast<long long>(p) * product.a.column_step);
      }
    }
    for (int j = 0; j < product.n; ++j) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (std::size_t p = 0; p < k; ++p) {
        b[p] =
            element(product.b.data, product.b.type, product.tf32,
                    batch * product.b.batch_step + static_cast<long long>(p) * product.b.row_step +
                        j * product.b.column_step);
      }
      const std::size_t first = first_of_sum(product);
      add_products(b.data() + first, a.data() + first * m, 1, k - first, m, sums.data());
      add_products(b.data(), a.data(), 1, first, m, sums.data());
      float* c = product.c + batch * product.c_batch_step + j * product.c_column_step;
      for (std::size_t i = 0; i < m; ++i) {
        c[i] = factor * sums[i] + (product.beta == 0 ? 0.0f : product.beta * c[i]);
      }
    }
  }
}

}  // namespace attnscope::cuda::emulation
