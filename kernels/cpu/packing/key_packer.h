#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"
#include "kernels/cpu/packing/packed_format.h"
#include "kernels/cpu/packing/row_packer.h"

namespace attnscope {

/// Threads of `threads` that may read K at once: more than some do not make memory faster, and a
/// tensor that prefers to be read in order is read by one.
int64_t reading_threads(const HeadTensor& k, int threads);

/// Reads keys of one head of K and packs them, with memory of its own. Borrows the format and the
/// tensor. Not thread-safe: one a thread.
class KeyPacker {
 public:
  /// `read_keys`: how many keys are read at a time, a multiple of kPanelKeys.
  KeyPacker(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
            int64_t read_keys);
  /// Bytes that one holds, beside what the tensor's reader takes.
  static int64_t bytes(const PackedFormat& format, int64_t read_keys);

  /// The power of 2, as an exponent, that all keys' features are divided by (linear scores): that
  /// of the head's largest number, for which keys are read until it is known. 0 for other scores.
  int key_exponent();

  /// Packs `keys`, from the first one of a panel on, into whole panels. Returns the largest length
  /// of a key for tiles, else 0.
  float pack(IndexRange keys, int exponent, float* panels);

 private:
  /// At most read_keys.
  float pack_read(IndexRange keys, int exponent, float* panels);

  const PackedFormat& format_;
  const HeadTensor& k_;
  const int64_t batch_, head_, read_keys_;
  const std::unique_ptr<std::byte[]> rows_;
  const std::unique_ptr<float[]> floats_;
  const std::unique_ptr<float[]> elements_;
  const RowPacker packer_;
};

}  // namespace attnscope
