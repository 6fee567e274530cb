#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"

namespace attnscope {

/// All files that the export at `path` consists of: itself, its shards, the parts that it links.
std::vector<std::filesystem::path> files_of_export(const std::filesystem::path& path,
                                                   const ExportManifest& stored);

/// A file that an export names and that is not there, or not in its size.
struct LackingFile {
  std::string name;    ///< as the export has it, with the shards' folder
  int64_t bytes = -1;  ///< that it has; −1: it is missing
  int64_t expected = 0;
};
/// Shards and parts, in their order. Looks at no content.
std::vector<LackingFile> lacking_files(const std::filesystem::path& path,
                                       const ExportManifest& stored);

/// "has another name than it was written under: other programs …" of a master whose shards were
/// renamed with it; else empty.
std::string renamed_text(const ExportManifest& stored);

}  // namespace attnscope
