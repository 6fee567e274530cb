#pragma once

#include <cstdint>
#include <span>

#include "io/export/read/stored_maps.h"

namespace attnscope {

/// The entries of some queries (ascending, of those that the file has rows of) over a range of
/// keys, row after row; NaN where they are not in the file. Holds what stored_rows_bytes() says
/// beside `out`. Thread-safe. Throws Error(file) where a chunk is not what was written.
void read_stored_rows(const StoredMaps& maps, const StoredHead& head,
                      std::span<const int64_t> queries, IndexRange keys, std::span<float> out);
int64_t stored_rows_bytes(const StoredMaps& maps, const StoredHead& head);

}  // namespace attnscope
