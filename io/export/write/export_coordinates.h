#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/hdf5/hdf5_writer.h"

namespace attnscope {

/// CF's `coordinates` attribute of datasets with query and key axes, and with a query axis only.
constexpr std::string_view kMapCoordinates =
    "query_t query_y query_x query_segment key_t key_y key_x key_segment";
constexpr std::string_view kQueryCoordinates = "query_t query_y query_x query_segment";

/// The dimension scales of one group, to be attached to its datasets.
struct ExportScales {
  Hdf5Dataset batch, head, query, key;
  Hdf5Dataset channel;  ///< of V; of outputs alone
  /// Of the checksums; empty without.
  Hdf5Dataset query_chunk, column_chunk;
};

/// A dimension scale of indices; `variable` as of Hdf5Writer::make_scale().
Hdf5Dataset write_scale(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                        const std::vector<int32_t>& values, std::string_view long_name,
                        bool variable = true);

/// Writes the scales batch, head, query, key (and dv for outputs; with `chunks` those of the
/// checksums), the coordinates query_… and key_…, and text_tokens where they were recorded. Throws
/// Error(file).
ExportScales write_coordinates(const Hdf5Writer& writer, hid_t parent, const ExportLayout& layout,
                               const ExportGroup& group, bool chunks);

}  // namespace attnscope
