#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "io/export/format/export_layout.h"
#include "io/export/format/export_spec.h"
#include "io/export/read/part_file.h"
#include "io/files/input_set.h"

namespace attnscope {

/// Heads of a group of the whole that stand in one part.
struct GroupPiece {
  const PartFile* part = nullptr;
  size_t group = 0;        ///< of the part's groups
  int64_t first_head = 0;  ///< their place among the whole group's heads
  int64_t heads = 0;       ///< of each batch item
};

/// The whole export that parts are of, as one process would have been asked for it: enough to write
/// its file without the capture. Layout and pieces borrow the parts.
struct MergedExport {
  std::shared_ptr<InputSet> inputs;                    ///< the parts' files
  std::vector<std::unique_ptr<const PartFile>> parts;  ///< in the order of their shares
  ExportSpec spec;                                     ///< without calls
  ExportLayout layout;
  std::vector<std::vector<GroupPiece>> pieces;  ///< of each group, in the order of their heads

  std::vector<std::filesystem::path> paths() const;
};

/// Opens the parts and makes the whole of what they say. Throws Error(file) as order_of_parts() and
/// PartFile do, and where the parts do not fit each other.
MergedExport open_merged_export(const std::vector<std::filesystem::path>& parts, bool mixed);

}  // namespace attnscope
