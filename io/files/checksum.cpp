#include "io/files/checksum.h"

#ifdef ATTNSCOPE_XXHASH_DISPATCH
// The same hash by the widest instructions of this machine: three times SSE2's speed.
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace attnscope {

uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(checksum64(bytes));
}

uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace attnscope
