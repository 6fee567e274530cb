#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/files/byte_source.h"

namespace attnscope {

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
