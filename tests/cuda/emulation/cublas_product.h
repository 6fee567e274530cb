#pragma once

#include "cublas_v2.h"

namespace attnscope::cuda::emulation {

/// One operand: element (row, column) of op(X) is at row * row_step + column * column_step of a
/// batch's, counted in elements.
struct Operand {
  const unsigned char* data;
  cudaDataType type;
  long long row_step, column_step, batch_step;
};

struct Product {
  int m, n, k, batches;
  float alpha, beta;
  Operand a;  // [m, k]
  Operand b;  // [k, n]
  float* c;   // [m, n] by columns
  long long c_column_step, c_batch_step;
  bool tf32 = false;  // float operands are rounded to 10 bits of mantissa
};

/// The bytes of an element, 0 when the emulation does not know the type.
std::size_t element_bytes(cudaDataType type);

/// c = alpha * a·b + beta * c, float sums in the order of k; c is not read where beta is 0.
void multiply(const Product& product);

}  // namespace attnscope::cuda::emulation
