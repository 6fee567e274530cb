#include "io/export/write/prepared_tile.h"

#include <zlib.h>

#include <cstring>
#include <new>

#include "core/base/error.h"
#include "core/reduce/row_reductions.h"
#include "io/export/write/chunk_writer.h"
#include "io/files/checksum.h"

namespace attnscope {
namespace {

/// Most of the gain for a third of the time of the highest level.
constexpr int kDeflateLevel = 4;

/// The library's shuffle filter: first bytes of all elements, then all second ones …
void shuffle(std::span<const std::byte> chunk, int64_t element, std::byte* out) {
  const int64_t count = static_cast<int64_t>(chunk.size()) / element;
  for (int64_t byte = 0; byte < element; ++byte) {
    for (int64_t i = 0; i < count; ++i) *out++ = chunk[static_cast<size_t>(i * element + byte)];
  }
}

std::vector<std::byte> deflate_chunk(std::span<const std::byte> chunk, int64_t element) {
  std::vector<std::byte> shuffled;
  if (element > 1) {
    shuffled.resize(chunk.size());
    shuffle(chunk, element, shuffled.data());
    chunk = shuffled;
  }
  uLongf bytes = compressBound(static_cast<uLong>(chunk.size()));
  std::vector<std::byte> stored(bytes);
  const int result = compress2(reinterpret_cast<Bytef*>(stored.data()), &bytes,
                               reinterpret_cast<const Bytef*>(chunk.data()),
                               static_cast<uLong>(chunk.size()), kDeflateLevel);
  if (result != Z_OK) throw std::bad_alloc();
  stored.resize(bytes);
  stored.shrink_to_fit();
  return stored;
}

void compress_tile(const ExportLayout& layout, const ExportGroup& group, const Tile& tile,
                   PreparedTile& prepared) {
  const ChunkGrid& grid = group.grid;
  const bool narrow = layout.request.chunk_cols != grid.chunk_cols;
  const auto bytes = static_cast<size_t>(grid.chunk_bytes());
  std::vector<std::byte> scratch(narrow ? bytes : 0);
  for (const std::byte* chunk : tile.chunks) {
    prepared.chunks.emplace_back();
    if (chunk != nullptr) {
      if (narrow) narrow_chunk(chunk, layout.request.chunk_cols, grid, scratch.data());
      prepared.chunks.back() =
          deflate_chunk({narrow ? scratch.data() : chunk, bytes}, grid.element_bytes);
    }
    prepared.checksums.push_back(checksum(prepared.chunks.back()));
  }
  for (const RowNorm& norm : tile.norms) prepared.lse.push_back(static_cast<float>(norm.lse()));
}

/// Keeps the largest weights of a row, their keys and their sum; its first key is `first_key`.
void keep_largest(std::span<const float> row, int64_t first_key, std::span<KeyWeight> top,
                  PreparedTile& prepared) {
  prepared.mass.push_back(static_cast<float>(top_keys(row, first_key, top)));
  for (const KeyWeight& kept : top) {
    prepared.weights.push_back(kept.weight);
    prepared.keys.push_back(kept.key);
  }
}

void keep_above(std::span<const float> row, int64_t first_key, double weight,
                PreparedTile& prepared) {
  const size_t before = prepared.keys.size();
  prepared.mass.push_back(
      static_cast<float>(keys_above(row, first_key, weight, prepared.weights, prepared.keys)));
  prepared.counts.push_back(static_cast<int64_t>(prepared.keys.size() - before));
}

void reduce_tile(const ExportSpec& spec, const ExportLayout& layout, const Tile& tile,
                 PreparedTile& prepared) {
  const auto keys = static_cast<size_t>(tile.cols.size());
  const std::vector<float> zeros(tile.chunks.front() == nullptr ? keys : 0);
  const auto* values = reinterpret_cast<const float*>(tile.chunks.front());
  const int64_t first_key = tile.task->keys.begin;
  std::vector<KeyWeight> top;
  if (spec.product == ExportProduct::topk) {
    top.resize(static_cast<size_t>(spec.kept_largest().keys));
    // As much as is planned for: a list that grows takes up to three times that.
    const auto rows = static_cast<size_t>(tile.rows.size());
    prepared.mass.reserve(rows);
    prepared.weights.reserve(rows * top.size());
    prepared.keys.reserve(rows * top.size());
  }
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const std::span<const float> row(
        values == nullptr ? zeros.data() : values + r * layout.request.chunk_cols, keys);
    if (spec.product == ExportProduct::topk) {
      keep_largest(row, first_key, top, prepared);
    } else {
      keep_above(row, first_key, spec.kept_above().weight, prepared);
    }
  }
}

}  // namespace

PreparedTile prepare_tile(const ExportSpec& spec, const ExportLayout& layout,
                          const ExportGroup& group, int64_t head, const Tile& tile) {
  PreparedTile prepared;
  prepared.head = head;
  prepared.rows = tile.rows;
  prepared.first_chunk = tile.cols.begin / layout.request.chunk_cols;
  if (spec.gzip) {
    compress_tile(layout, group, tile, prepared);
  } else {
    reduce_tile(spec, layout, tile, prepared);
  }
  return prepared;
}

}  // namespace attnscope
