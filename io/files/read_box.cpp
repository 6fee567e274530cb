#include "io/files/read_box.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace attnscope {
namespace {

/// Pieces are read together up to this many bytes …
constexpr int64_t kWindowBytes = 256 * 1024;
/// … and where at most this many times the bytes wanted are read.
constexpr int64_t kWasteFactor = 16;

/// Merges fast axes that are wanted whole and packed in memory into the axis outside them.
std::vector<FileAxis> merge_axes(std::span<const FileAxis> axes, int64_t element) {
  std::vector<FileAxis> merged(axes.begin(), axes.end());
  if (merged.empty()) merged.push_back({1, 0, 1, element});
  while (merged.size() > 1) {
    const FileAxis inner = merged.back();
    FileAxis& outer = merged[merged.size() - 2];
    const bool whole = inner.count == inner.extent;
    const bool packed = outer.count == 1 || outer.destination == inner.count * inner.destination;
    if (!whole || !packed) break;
    outer = {outer.extent * inner.extent, outer.begin * inner.extent, outer.count * inner.extent,
             inner.destination};
    merged.pop_back();
  }
  return merged;
}

/// Copies one run of elements to places `step` bytes apart.
void scatter(const std::byte* run, int64_t count, int64_t element, int64_t step,
             std::byte* destination) {
  if (step == element) {
    std::memcpy(destination, run, static_cast<size_t>(count * element));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * step, run + i * element, static_cast<size_t>(element));
  }
}

/// Reads `rows` (an axis) of runs of `inner` starting at `offset`.
void read_rows(const ByteSource& file, int64_t offset, int64_t element, const FileAxis& rows,
               const FileAxis& inner, std::byte* destination, std::vector<std::byte>& window) {
  const int64_t row_bytes = inner.extent * element;
  const int64_t run_bytes = inner.count * element;
  const bool direct = inner.destination == element;
  const bool together = row_bytes / kWasteFactor <= run_bytes;
  const int64_t step = together ? std::max<int64_t>(1, kWindowBytes / row_bytes) : 1;
  for (int64_t row = 0; row < rows.count; row += step) {
    const int64_t count = std::min(step, rows.count - row);
    const int64_t begin = offset + (rows.begin + row) * row_bytes + inner.begin * element;
    std::byte* target = destination + row * rows.destination;
    if (count == 1 && direct) {
      file.read_at(begin, {target, static_cast<size_t>(run_bytes)});
      continue;
    }
    if (count == 1 && run_bytes > kWindowBytes) {
      const int64_t piece = kWindowBytes / element;
      window.resize(static_cast<size_t>(piece * element));
      for (int64_t i = 0; i < inner.count; i += piece) {
        const int64_t n = std::min(piece, inner.count - i);
        file.read_at(begin + i * element, {window.data(), static_cast<size_t>(n * element)});
        scatter(window.data(), n, element, inner.destination, target + i * inner.destination);
      }
      continue;
    }
    window.resize(static_cast<size_t>((count - 1) * row_bytes + run_bytes));
    file.read_at(begin, window);
    for (int64_t r = 0; r < count; ++r) {
      scatter(window.data() + r * row_bytes, inner.count, element, inner.destination,
              target + r * rows.destination);
    }
  }
}

}  // namespace

void read_box(const ByteSource& file, int64_t offset, int64_t element,
              std::span<const FileAxis> axes, std::byte* destination) {
  for (const FileAxis& axis : axes) {
    if (axis.count == 0) return;
  }
  std::vector<FileAxis> merged = merge_axes(axes, element);
  if (merged.size() == 1) merged.insert(merged.begin(), FileAxis{1, 0, 1, 0});
  const size_t outer = merged.size() - 2;
  const FileAxis& rows = merged[outer];
  const FileAxis& inner = merged[outer + 1];
  std::vector<int64_t> at(outer, 0);
  std::vector<std::byte> window;
  while (true) {
    int64_t place = 0;
    std::byte* target = destination;
    for (size_t axis = 0; axis < outer; ++axis) {
      place = place * merged[axis].extent + merged[axis].begin + at[axis];
      target += at[axis] * merged[axis].destination;
    }
    const int64_t start = offset + place * rows.extent * inner.extent * element;
    read_rows(file, start, element, rows, inner, target, window);
    size_t axis = outer;
    while (axis > 0 && ++at[axis - 1] == merged[axis - 1].count) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace attnscope
