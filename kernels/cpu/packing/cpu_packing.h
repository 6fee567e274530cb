#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/layout.h"
#include "kernels/cpu/packing/packed_format.h"

namespace attnscope {

/// Elements of all packed panels of `num_keys` keys.
int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys);
/// Threads of `threads` that pack_keys has work for: reading_threads at most.
int64_t packing_threads(const PackedFormat& format, const HeadTensor& k, int threads);
/// HeadTensor::read_rows may take so much of its own.
inline constexpr int64_t kReaderBytes = int64_t{1} << 20;
/// Bytes that pack_keys allocates while it runs, beside what each of its threads' readers may take.
int64_t pack_keys_transient_bytes(const PackedFormat& format, const HeadTensor& k, int threads);

/// The facts about a head's keys that pack_keys() finds.
struct PackedKeys {
  int exponent = 0;  ///< what all features were divided by, as a power of 2 (linear scores)
  /// The largest length of a key; infinite where float32 does not hold its square. 0 but for tiles.
  float largest_key = 0;
};
/// Reads one head of K in pieces of at most 1 MiB and packs it, on packing_threads() or as many of
/// them as the system starts. Errors are those of the earliest keys.
PackedKeys pack_keys(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                     int threads, float* panels);

/// Rows of queries, stored one after the other in format.dtype at any address, of which there are
/// up to format.group_rows().
struct QueryRows {
  const std::byte* rows = nullptr;
  int64_t count = 0;
};
/// The packed form of query rows; arrays have format.computed_rows(count) entries.
struct PackedQueries {
  float* group = nullptr;
  float* exponents = nullptr;  ///< what each row's features were divided by
  float* lengths = nullptr;    ///< of each row, like PackedKeys::largest_key; 0 but for tiles
};
/// `scratch` holds pack_scratch_floats(format) numbers, 64-byte aligned.
void pack_queries(const PackedFormat& format, const QueryRows& queries, const PackedQueries& packed,
                  float* scratch);
int64_t pack_scratch_floats(const PackedFormat& format);

}  // namespace attnscope
