#include "io/tensors/chunk_packing.h"

#include <zlib.h>

#include <algorithm>

#include "core/base/error.h"
#include "io/tensors/deflate_ratio.h"

namespace attnscope {
namespace {

constexpr size_t kChecksumBytes = 4;

/// HDF5's own checksum (H5checksum.c): Fletcher's over big-endian words of 16 bits.
uint32_t fletcher32(std::span<const std::byte> data) {
  constexpr size_t kWordsUnfolded = 360;  // the sums of so many words fit 32 bits
  uint32_t low = 0, high = 0;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(data[i]); };
  const auto fold = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  const size_t words = data.size() / 2;
  for (size_t word = 0; word < words;) {
    const size_t end = std::min(words, word + kWordsUnfolded);
    for (; word < end; ++word) {
      low += byte(2 * word) << 8 | byte(2 * word + 1);
      high += low;
    }
    low = fold(low);
    high = fold(high);
  }
  if (data.size() % 2 != 0) {
    low += byte(data.size() - 1) << 8;
    high += low;
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

/// Byte i of all elements stands before byte i + 1 of all; what makes no whole element at the end.
std::vector<std::byte> unshuffle(const std::vector<std::byte>& bytes, size_t element) {
  const size_t count = bytes.size() / element;
  std::vector<std::byte> result(bytes.size());
  for (size_t b = 0; b < element; ++b) {
    const std::byte* source = bytes.data() + b * count;
    for (size_t i = 0; i < count; ++i) result[i * element + b] = source[i];
  }
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(count * element), bytes.end(),
            result.begin() + static_cast<std::ptrdiff_t>(count * element));
  return result;
}

}  // namespace

std::optional<ChunkFilter> chunk_filter(int id, std::span<const unsigned> values) {
  if (id == 1) return ChunkFilter{ChunkFilter::Kind::deflate, 0};
  if (id == 2 && !values.empty() && values[0] > 0) {
    return ChunkFilter{ChunkFilter::Kind::shuffle, values[0]};
  }
  if (id == 3) return ChunkFilter{ChunkFilter::Kind::fletcher32, 0};
  return std::nullopt;
}

std::string place_fault(const ChunkPlace& place, const ChunkPacking& packing, int64_t file_bytes) {
  if (place.offset < 0 || place.bytes < 0 || place.offset > file_bytes ||
      place.bytes > file_bytes - place.offset) {
    return "a chunk lies beyond the end of the file";
  }
  const bool packed = !packing.filters.empty();
  // Deflate adds a few bytes to data that it cannot pack, and a checksum takes four.
  const int64_t most = packing.chunk_bytes + (packed ? packing.chunk_bytes / 1000 + 256 : 0);
  const int64_t least = packed ? packing.chunk_bytes / kMaxDeflateRatio : packing.chunk_bytes;
  if (place.bytes > most || place.bytes < least) {
    return "a chunk of " + std::to_string(packing.chunk_bytes) + " bytes cannot be stored in " +
           std::to_string(place.bytes);
  }
  return "";
}

std::vector<std::byte> unpack_chunk(std::vector<std::byte> stored, uint32_t skipped,
                                    const ChunkPacking& packing, const std::string& name,
                                    const std::string& where) {
  const auto fail = [&](const char* what) { throw file_error(name, where, what); };
  std::vector<std::byte> bytes = std::move(stored);
  for (size_t i = packing.filters.size(); i-- > 0;) {
    const ChunkFilter& filter = packing.filters[i];
    if (i < 32 && (skipped >> i & 1) != 0) continue;
    if (filter.kind == ChunkFilter::Kind::fletcher32) {
      if (bytes.size() < kChecksumBytes) fail("is too short for its checksum");
      uint32_t recorded = 0;
      for (size_t b = kChecksumBytes; b-- > 0;) {
        recorded = recorded << 8 | static_cast<uint32_t>(bytes[bytes.size() - kChecksumBytes + b]);
      }
      bytes.resize(bytes.size() - kChecksumBytes);
      if (fletcher32(bytes) != recorded) fail("is damaged: its checksum does not match");
    } else if (filter.kind == ChunkFilter::Kind::shuffle) {
      bytes = unshuffle(bytes, static_cast<size_t>(filter.element));
    } else {
      // Nothing but a checksum makes a chunk longer.
      std::vector<std::byte> unpacked(static_cast<size_t>(packing.chunk_bytes) + kChecksumBytes);
      uLongf size = unpacked.size();
      const int result = uncompress(reinterpret_cast<Bytef*>(unpacked.data()), &size,
                                    reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
      if (result != Z_OK) fail("is damaged: it cannot be unpacked");
      unpacked.resize(size);
      bytes = std::move(unpacked);
    }
  }
  if (static_cast<int64_t>(bytes.size()) != packing.chunk_bytes) {
    fail("is damaged: it does not unpack to its size");
  }
  return bytes;
}

}  // namespace attnscope
