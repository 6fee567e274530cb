#pragma once

#include <cstdint>

#include "core/tensor/layout.h"
#include "kernels/cpu/packing/packed_format.h"
#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

/// The keys of a head, and how they are multiplied. Borrowed.
struct KeyRowSource {
  const PackedFormat& format;  ///< of tiles
  const HeadTensor& k;
  int64_t batch = 0;
  int64_t head = 0;  ///< of K
  const CpuKernels& kernels;
  void (*multiply)(const KeyRows& rows) = nullptr;  ///< CpuKernels::Products::key_rows
  int threads = 1;                                  ///< at most
};

/// A few query rows that meet all keys. Borrowed.
struct KeyRowQueries {
  const float* columns = nullptr;  ///< KeyRows::queries
  int64_t rows = 0;                ///< at most kKeyRowTile
  /// Where no key is longer than this, it does not matter how long they are.
  double long_key = 0;
};

/// Products of the rows with all keys of a head: row r's with key j goes to products[r · stride +
/// j]; stride is at least key_row_stride(). They are the products of a packed head, bit for bit. K
/// is read once, in pieces that stay in a core's cache and of which threads take one after the
/// other. Returns a length that no key exceeds: the longest key's (PackedKeys::largest_key), or one
/// below long_key. Throws what reading throws, and Error(value) naming the first number that is not
/// finite: what is wrong with the earliest keys, by any number of threads.
float multiply_key_rows(const KeyRowSource& source, const KeyRowQueries& queries, float* products,
                        int64_t stride);

/// Floats from a row of products to the next.
int64_t key_row_stride(int64_t num_keys);
/// Bytes that multiply_key_rows holds, those of the tensor's readers included.
int64_t key_row_bytes(const PackedFormat& format, const HeadTensor& k, int threads);

}  // namespace attnscope
