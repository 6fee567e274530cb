#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/checked_math.h"
#include "core/problem/score.h"
#include "core/tensor/layout.h"
#include "kernels/cpu/cpu_kernels.h"

namespace attnscope {

/// Which products a packed head is made for.
enum class PackedProducts : uint8_t {
  floats,      ///< an element is a channel widened to float32, for linear scores its feature map φ
  bf16_pairs,  ///< two neighbouring channels in bf16, the even one in the low half
  tiles,       ///< the same for the tile unit; f16 as two, f32 as three bf16 numbers a channel
};

/// How the CPU kernels want Q and K: as 32-bit elements, a step of the head dimension after the
/// other. Keys stand in panels [steps, kPanelKeys], query rows in groups [steps, kRegisterRows].
/// Missing rows and channels are 0.
/// For tiles, steps are [parts, pairs]: a channel is the sum of its parts, exactly, the largest
/// first, and the pairs of a part fill whole tiles. Query rows stand as rows: a group is
/// [rows / kTileUnitRows, parts, kTileUnitRows, pairs].
struct PackedFormat {
  DType dtype = DType::f32;  ///< of the tensors: f32, f16 or bf16
  int64_t head_dim = 0;
  ScoreFunction score = ScoreFunction::softmax;
  /// bf16_pairs needs dtype bf16; both that are not floats need a score that is not linear.
  PackedProducts products = PackedProducts::floats;

  /// bf16 numbers that a channel is the sum of.
  int64_t parts() const;
  /// Elements of a row.
  int64_t steps() const;
  /// Rows of a group at most.
  int64_t group_rows() const {
    return products == PackedProducts::tiles ? kMaxGroupRows : kRegisterRows;
  }
  /// Rows that are computed where a group has `count`.
  int64_t computed_rows(int64_t count) const {
    return round_up(count, products == PackedProducts::tiles ? kTileUnitRows : kRegisterRows);
  }
};

/// Elements of all packed panels of `num_keys` keys.
int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys);
/// Threads of `threads` that pack_keys has work for; more than some do not make memory faster. One
/// for a tensor that prefers to be read in order.
int64_t packing_threads(const PackedFormat& format, const HeadTensor& k, int threads);
/// Bytes that pack_keys allocates while it runs, beside what each of its threads' readers may take.
int64_t pack_keys_transient_bytes(const PackedFormat& format, const HeadTensor& k, int threads);

/// What packing finds out about the keys of a head.
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
/// What becomes of them; arrays have format.computed_rows(count) entries.
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
