#include "io/files/byte_source.h"

#include <algorithm>

#include "core/base/error.h"

namespace attnscope {

void MemoryBytes::read_at(int64_t offset, std::span<std::byte> destination) const {
  const auto wanted = static_cast<int64_t>(destination.size());
  if (offset < 0 || offset > size() || wanted > size() - offset) {
    throw file_error(name_, "byte " + std::to_string(offset),
                     "ends at byte " + std::to_string(size()));
  }
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), destination.size(),
              destination.begin());
}

}  // namespace attnscope
