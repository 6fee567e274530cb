#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnscope {

/// One step in which HDF5 packs a chunk.
struct ChunkFilter {
  enum class Kind : uint8_t { deflate, shuffle, fletcher32 };
  Kind kind = Kind::deflate;
  int64_t element = 0;  ///< shuffle: bytes of an element
};

/// The filter of HDF5's number `id` with these parameters; nothing where it is none of ours.
std::optional<ChunkFilter> chunk_filter(int id, std::span<const unsigned> values);

/// How a dataset's chunks are packed.
struct ChunkPacking {
  int64_t chunk_bytes = 0;           ///< unpacked
  std::vector<ChunkFilter> filters;  ///< in the order in which it was done
};

/// Packed chunks may be as large as this; one is unpacked as a whole.
constexpr int64_t kMaxPackedChunkBytes = 16 << 20;

/// Where a chunk stands in the file.
struct ChunkPlace {
  int64_t offset = -1;
  int64_t bytes = 0;
  uint32_t skipped = 0;  ///< bit i: filter i was not applied to it
};

/// Why no such chunk can stand there in a file of `file_bytes`; empty where it can.
std::string place_fault(const ChunkPlace& place, const ChunkPacking& packing, int64_t file_bytes);

/// The entries of a chunk from its bytes in the file. Throws Error(file) "NAME: WHERE: what" where
/// they do not unpack to exactly a chunk, or fail their own checksum.
std::vector<std::byte> unpack_chunk(std::vector<std::byte> stored, uint32_t skipped,
                                    const ChunkPacking& packing, const std::string& name,
                                    const std::string& where);

}  // namespace attnscope
