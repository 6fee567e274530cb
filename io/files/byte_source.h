#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace attnscope {

/// Bytes that can be read from any place: a file, or a member of an archive as it unpacks. Its
/// members may be called from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  /// Fills `destination` from `offset`; throws Error(file) where that cannot be read.
  virtual void read_at(int64_t offset, std::span<std::byte> destination) const = 0;
  /// True where reading in ascending order, by one thread, takes far less work than any other way.
  virtual bool unpacks_in_order() const { return false; }
  /// Checks the whole against its recorded checksum, where it has one; reads everything the first
  /// time and nothing later. To be called before values are served. Throws Error(file).
  virtual void verify() const {}
};

/// Bytes that stand in memory, which stays its owner's and must outlive this. Thread-safe.
class MemoryBytes : public ByteSource {
 public:
  /// `name` is how messages call what the bytes were read from.
  MemoryBytes(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  void read_at(int64_t offset, std::span<std::byte> destination) const override;

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

}  // namespace attnscope
