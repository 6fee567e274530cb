#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/export/format/export_layout.h"

namespace attnscope {

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

/// Creates an export with all its groups, attributes, coordinates and preallocated datasets, and
/// closes it. The library must not open it for writing again. `path` must not exist; on an
/// Error(file) what was created stays.
ExportPlaces write_export_skeleton(const ExportSpec& spec, const ExportLayout& layout,
                                   const std::filesystem::path& path);

}  // namespace attnscope
