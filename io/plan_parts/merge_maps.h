#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/export/write/export_sink.h"
#include "io/plan_parts/merged_export.h"

namespace attnscope {

/// How a merge is watched and stopped.
struct MergeControl {
  std::stop_token stop = {};
  std::function<void(int64_t done, int64_t total)> progress = {};  ///< of bytes
};

/// Result of a merge.
struct MergeResult {
  bool complete_already = false;
  int64_t bytes_written = 0;
  std::vector<std::string> warnings = {}, notes = {};
};

/// Writes the whole of parts whose maps stand in tiles as one file: byte for byte what one process
/// would have written. What is copied is held against its checksums. Journal and leftovers are
/// those of an export, so that --resume goes on where a merge was interrupted. Throws Error(file)
/// naming part, group and place of what is damaged; Error(interrupted), after what is complete was
/// committed.
MergeResult merge_maps(const MergedExport& whole, const std::filesystem::path& out,
                       const ExportWriteOptions& options, const MergeControl& control);

/// Bytes of tiles and LSEs of the whole.
int64_t maps_bytes(const MergedExport& whole);

}  // namespace attnscope
