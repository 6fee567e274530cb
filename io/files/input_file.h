#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "io/files/byte_source.h"

namespace attnscope {

/// A regular file open for reading. Immutable; thread-safe. Shared by the tensors that stand in it.
class InputFile : public ByteSource {
 public:
  /// Throws Error(file) when it cannot be opened or is no regular file.
  explicit InputFile(std::filesystem::path path);
  ~InputFile() override;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Bytes it had when it was opened.
  int64_t size() const override { return size_; }
  /// Fills `destination` from `offset`; throws Error(file) where the file ends before that.
  void read_at(int64_t offset, std::span<std::byte> destination) const override;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// One axis of an array in a file.
struct FileAxis {
  int64_t extent = 0;       ///< elements along it in the file
  int64_t begin = 0;        ///< first one wanted
  int64_t count = 0;        ///< how many are wanted
  int64_t destination = 0;  ///< bytes from one to the next in memory
};

/// Copies a box of a packed array to memory: `axes` from the slowest to the fastest in the file,
/// the array starting at `offset`, elements of `element` bytes. Reads neighbouring pieces together
/// where little lies between them; memory beyond the destination stays below 300 KiB.
void read_box(const ByteSource& file, int64_t offset, int64_t element,
              std::span<const FileAxis> axes, std::byte* destination);

}  // namespace attnscope
