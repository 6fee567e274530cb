#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "core/base/index_range.h"
#include "kernels/cpu/keys/packed_head.h"
#include "kernels/cpu/keys/product_stream.h"

namespace attnscope {

/// Where one call finds what its row groups are multiplied with: the packed panels of the head's
/// key blocks, or, where the head streams K or knows them, the products of its only row group.
/// Borrows the head. Not thread-safe.
class KeyProducts {
 public:
  /// Blocks beyond blocks.end are not asked for. `queries`: the call's first packed row group, as
  /// it is when a block is first asked for; a stream has no other.
  KeyProducts(const PackedHead& head, IndexRange blocks, const float* queries);

  /// True where there are products() instead of panels().
  bool streamed() const { return head_.panels == nullptr; }
  /// The first panel of the block.
  const float* panels(int64_t block) const;
  /// See ProductStream::block; any order will do, but a stream begins anew to go back.
  struct Products {
    const float* first = nullptr;
    int64_t stride = 0;
  };
  Products products(int64_t block);

 private:
  const PackedHead& head_;
  const IndexRange blocks_;
  const float* const queries_;
  std::unique_lock<std::mutex> turn_;
  std::optional<ProductStream> stream_;
  int64_t last_ = 0;  ///< block that the stream was asked for
};

}  // namespace attnscope
