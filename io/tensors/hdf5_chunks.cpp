#include "io/tensors/hdf5_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/error.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

constexpr int64_t kCacheBytes = 16 << 20;
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

ChunkCache::Bytes ChunkCache::get(int64_t offset,
                                  const std::function<std::vector<std::byte>()>& unpack) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == offset; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return found->second;
  }
  auto bytes = std::make_shared<const std::vector<std::byte>>(unpack());
  bytes_ += static_cast<int64_t>(bytes->size());
  entries_.emplace_front(offset, bytes);
  while (bytes_ > kCacheBytes && entries_.size() > 1) {
    bytes_ -= static_cast<int64_t>(entries_.back().second->size());
    entries_.pop_back();
  }
  return bytes;
}

void ChunkedTensor::read(std::span<const int64_t> begin, std::span<const int64_t> count,
                         std::byte* destination) const {
  const std::vector<int64_t>& shape = layout_.shape;
  const size_t rank = shape.size();
  assert(begin.size() == rank && count.size() == rank);
  const int64_t element = dtype_bytes(layout_.dtype);
  std::vector<int64_t> steps(rank), first(rank), last(rank), grid(rank);
  int64_t step = element;
  for (size_t axis = rank; axis-- > 0;) {
    assert(begin[axis] >= 0 && count[axis] >= 0 && begin[axis] + count[axis] <= shape[axis]);
    if (count[axis] == 0) return;
    steps[axis] = step;
    step *= count[axis];
    first[axis] = begin[axis] / layout_.chunk[axis];
    last[axis] = (begin[axis] + count[axis] - 1) / layout_.chunk[axis];
    grid[axis] = (shape[axis] - 1) / layout_.chunk[axis] + 1;
  }
  std::vector<int64_t> at = first;
  std::vector<FileAxis> axes(rank);
  while (true) {
    int64_t index = 0;
    std::byte* target = destination;
    for (size_t axis = 0; axis < rank; ++axis) {
      index = index * grid[axis] + at[axis];
      const int64_t origin = at[axis] * layout_.chunk[axis];
      const int64_t from = std::max(begin[axis], origin);
      const int64_t to = std::min(begin[axis] + count[axis], origin + layout_.chunk[axis]);
      axes[axis] = {layout_.chunk[axis], from - origin, to - from, steps[axis]};
      target += (from - begin[axis]) * steps[axis];
    }
    read_chunk(layout_.places[static_cast<size_t>(index)], axes, target);
    size_t axis = rank;
    while (axis > 0 && ++at[axis - 1] > last[axis - 1]) {
      --axis;
      at[axis] = first[axis];
    }
    if (axis == 0) break;
  }
  if (layout_.big_endian && element > 1) swap_bytes(destination, step / element, element);
}

void ChunkedTensor::read_chunk(const ChunkPlace& place, std::span<const FileAxis> axes,
                               std::byte* destination) const {
  const int64_t element = dtype_bytes(layout_.dtype);
  if (layout_.filters.empty()) {
    read_box(*file_, place.offset, element, axes, destination);
    return;
  }
  const ChunkCache::Bytes bytes = cache_->get(place.offset, [&] { return unpack(place); });
  read_box(MemoryBytes(*bytes, name()), 0, element, axes, destination);
}

std::vector<std::byte> ChunkedTensor::unpack(const ChunkPlace& place) const {
  const auto fail = [&](const char* what) {
    throw file_error(name_, "chunk at byte " + std::to_string(place.offset), what);
  };
  std::vector<std::byte> bytes(static_cast<size_t>(place.bytes));
  file_->read_at(place.offset, bytes);
  for (size_t i = layout_.filters.size(); i-- > 0;) {
    const ChunkFilter& filter = layout_.filters[i];
    if (i < 32 && (place.skipped >> i & 1) != 0) continue;
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
      std::vector<std::byte> unpacked(static_cast<size_t>(layout_.chunk_bytes) + kChecksumBytes);
      uLongf size = unpacked.size();
      const int result = uncompress(reinterpret_cast<Bytef*>(unpacked.data()), &size,
                                    reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
      if (result != Z_OK) fail("is damaged: it cannot be unpacked");
      unpacked.resize(size);
      bytes = std::move(unpacked);
    }
  }
  if (static_cast<int64_t>(bytes.size()) != layout_.chunk_bytes) {
    fail("is damaged: it does not unpack to its size");
  }
  return bytes;
}

}  // namespace attnscope
