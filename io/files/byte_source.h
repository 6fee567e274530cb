#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace attnscope {

/// Bytes that can be read from any place: a file, or a member of an archive as it unpacks. Its
/// members may be called from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Fills `destination` from `offset`; throws Error(file) where that cannot be read.
  virtual void read_at(int64_t offset, std::span<std::byte> destination) const = 0;
  /// Checks the whole against its recorded checksum, where it has one; reads everything the first
  /// time and nothing later. To be called before values are served. Throws Error(file).
  virtual void verify() const {}
};

}  // namespace attnscope
