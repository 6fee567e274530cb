#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/stream/tile_sink.h"
#include "io/export/format/export_spec.h"
#include "io/export/format/group_description.h"

namespace attnscope {

/// How one dataset (batch, head, query, key or channel) is cut into chunks (1, 1, chunk_rows,
/// chunk_cols). Chunks are numbered row-major and all have the same size; what lies beyond the
/// edges is zero.
struct ChunkGrid {
  int64_t heads = 0;  ///< batch items × heads
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t chunk_rows = 0;
  int64_t chunk_cols = 0;
  int64_t element_bytes = 0;

  int64_t row_chunks() const;
  int64_t col_chunks() const;
  int64_t chunks() const { return heads * row_chunks() * col_chunks(); }
  int64_t chunk_bytes() const { return chunk_rows * chunk_cols * element_bytes; }
  int64_t bytes() const { return chunks() * chunk_bytes(); }
  /// `head` counts batch items and heads: item · number of heads + head.
  int64_t chunk_number(int64_t head, int64_t row_chunk, int64_t col_chunk) const;
};

/// One group of the file: a call and a branch of it.
struct ExportGroup {
  std::string name;                 ///< below /calls
  const CallEntry* call = nullptr;  ///< null where parts tell what the group says:
  std::shared_ptr<const CallDescription> recorded_call = nullptr;
  std::function<GroupDescription()> recorded = nullptr;
  std::string branch;
  std::vector<int64_t> batch;
  std::vector<int64_t> heads;
  IndexRange row_range;
  std::span<const int64_t> row_list;  ///< borrowed from the spec; empty: row_range
  IndexRange keys;
  bool has_lse = false;
  ChunkGrid
      grid;  ///< of weights, logits or outputs; only rows and heads matter where there are none

  int64_t num_heads() const { return grid.heads; }
  int64_t num_rows() const { return grid.rows; }
  int64_t row_at(int64_t i) const {
    return row_list.empty() ? row_range.begin + i : row_list[static_cast<size_t>(i)];
  }
};

/// An export file's groups and entries, before it exists. Pure data; borrows the spec's lists.
struct ExportLayout {
  std::vector<ExportGroup> groups;
  TileRequest request;
  std::string entries_name;  ///< "weights", "logits", "output"; empty: LSEs only

  bool reduced = false;  ///< whole rows are reduced (topk, threshold): there are no chunks to check
  bool has_entries() const { return !entries_name.empty(); }
};

/// Throws Error(usage) when the spec's parts do not fit each other or its sizes overflow.
ExportLayout make_export_layout(const ExportSpec& spec);

/// Where one group's data starts in the file; −1 for what the group does not have. All of it is
/// little-endian and packed.
struct GroupPlaces {
  int64_t entries = -1;            ///< chunk 0 of weights, logits or outputs; the others follow
  int64_t entries_checksums = -1;  ///< uint32, one a chunk, by chunk number
  int64_t lse = -1;                ///< float32 [batch · head, row]
  int64_t lse_checksums = -1;      ///< uint32 [batch · head]
};

/// Where everything that is written after the file's structure stands.
struct ExportPlaces {
  int64_t complete = -1;   ///< one byte
  int64_t structure = -1;  ///< uint64: the checksum of everything that is written now
  std::vector<GroupPlaces> groups;
  int64_t file_bytes = 0;
};

}  // namespace attnscope
