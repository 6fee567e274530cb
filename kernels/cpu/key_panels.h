#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "core/base/index_range.h"
#include "kernels/cpu/key_stream.h"
#include "kernels/cpu/packed_head.h"

namespace attnscope {

/// Where one call finds the packed panels of a head's key blocks: in the head, or in a stream that
/// begins with the first block that is asked for. Borrows the head. Not thread-safe.
class KeyPanels {
 public:
  /// Blocks beyond blocks.end are not asked for.
  KeyPanels(const PackedHead& head, IndexRange blocks);

  /// The first panel of the block, valid until another block is asked for. Any order will do; a
  /// stream begins anew where it would have to go back. Throws what reading K throws.
  const float* block(int64_t block);

 private:
  const PackedHead& head_;
  const IndexRange blocks_;
  std::unique_lock<std::mutex> turn_;
  std::optional<KeyStream> stream_;
  int64_t last_ = -1;  ///< block that the stream was asked for
};

}  // namespace attnscope
