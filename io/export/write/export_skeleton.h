#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/export/format/export_layout.h"

namespace attnscope {

/// Creates an export with all its groups, attributes, coordinates and preallocated datasets, and
/// closes it. The library must not open it for writing again. `path` must not exist; on an
/// Error(file) what was created stays.
ExportPlaces write_export_skeleton(const ExportSpec& spec, const ExportLayout& layout,
                                   const std::filesystem::path& path);

}  // namespace attnscope
