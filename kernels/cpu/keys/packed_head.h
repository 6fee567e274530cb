#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/index_range.h"
#include "core/problem/attention_problem.h"
#include "kernels/cpu/packing/packed_format.h"
#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

struct FreeAligned {
  void operator()(float* p) const { std::free(p); }
};
using PanelMemory = std::unique_ptr<float, FreeAligned>;

/// The way in which a bound head keeps K.
enum class KeyKeeping : uint8_t {
  packed,    ///< all of it, packed once
  streamed,  ///< none: every call reads and packs it anew, see ProductStream; not for tiles
};

/// The raw products of the only rows that a head is asked for, with all keys; what has to be known
/// of the keys beside them. Borrowed.
struct KnownProducts {
  const float* first = nullptr;  ///< rows of whole key blocks that lie `stride` floats apart
  int64_t stride = 0;
  float largest_key = 0;  ///< see PackedHead
};

/// K of a bound head, and the kernels for it. Immutable once K is packed; thread-safe.
struct PackedHead {
  /// Packs K on up to `threads` threads, or has as many for streaming it. Borrows the problem and
  /// the kernels.
  PackedHead(const AttentionProblem& problem, int64_t batch, int64_t head,
             const PackedFormat& format, const CpuKernels& kernels,
             const CpuKernels::Products& products, KeyKeeping keeping, int threads);
  /// Reads nothing of K.
  PackedHead(const AttentionProblem& problem, int64_t batch, int64_t head,
             const PackedFormat& format, const CpuKernels& kernels,
             const CpuKernels::Products& products, const KnownProducts& known);

  int64_t num_keys() const { return problem.num_keys(); }
  int64_t num_blocks() const { return (num_keys() + kBlockKeys - 1) / kBlockKeys; }
  IndexRange keys_of_block(int64_t block) const {
    return intersect({block * kBlockKeys, (block + 1) * kBlockKeys}, {0, num_keys()});
  }

  const AttentionProblem& problem;
  const int64_t batch;
  const int64_t head;
  const PackedFormat format;
  const CpuKernels& kernels;
  const CpuKernels::Products products;
  const SplitFactor exponent_factor;  ///< scale·log₂(e)
  const SplitFactor logit_factor;     ///< scale
  /// Of logits that are capped.
  const std::optional<CapFactors> cap_factors;
  const int threads;
  const KnownProducts known;  ///< where they are, there are no panels
  PanelMemory panels;         ///< null where K is streamed
  int key_exponent = 0;       ///< what the features of K were divided by (linear scores)
  /// The largest length of a key, infinite where float32 does not hold its square; known for the
  /// tile unit's format only. With known products it may be more, where no row's powers are taken
  /// in another way for it.
  float largest_key = 0;
  /// Calls that stream K take turns, so that the head's memory is that of one.
  mutable std::mutex streaming;

 private:
  /// Of everything but keys.
  PackedHead(const AttentionProblem& problem, int64_t batch, int64_t head,
             const PackedFormat& format, const CpuKernels& kernels,
             const CpuKernels::Products& products, int threads, const KnownProducts& known);
};

}  // namespace attnscope
