#include "io/tensors/hdf5_chunks.h"

#include <algorithm>
#include <cassert>

#include "core/base/error.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {

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
  if (layout_.packing.filters.empty()) {
    read_box(*file_, place.offset, element, axes, destination);
    return;
  }
  const ChunkCache::Bytes bytes =
      cache_->get({file_.get(), place.offset}, [&] { return unpack(place); });
  read_box(MemoryBytes(*bytes, name()), 0, element, axes, destination);
}

std::vector<std::byte> ChunkedTensor::unpack(const ChunkPlace& place) const {
  std::vector<std::byte> stored(static_cast<size_t>(place.bytes));
  file_->read_at(place.offset, stored);
  return unpack_chunk(std::move(stored), place.skipped, layout_.packing, name_,
                      "chunk at byte " + std::to_string(place.offset));
}

}  // namespace attnscope
