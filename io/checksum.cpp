#include "io/checksum.h"

#include <xxhash.h>

namespace attnscope {

uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace attnscope
