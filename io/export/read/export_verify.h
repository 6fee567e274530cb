#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"

namespace attnscope {

/// How far an export is, as its mark and the journals of all who wrote it tell; nothing is
/// read back.
struct ExportState {
  bool complete = false;  ///< the mark is there
  bool has_journal = false;
  int64_t tiles_done = 0;
  int64_t tiles_total = 0;
};

/// Throws Error(file) when the mark is neither 0 nor 1.
ExportState export_state(const ExportManifest& stored, const std::filesystem::path& path);

/// The findings of verify_export().
struct VerifyReport {
  ExportManifest stored;
  ExportState state;
  int64_t tiles_good = 0;     ///< of a sharded export: shards, of a master: parts, here and below
  int64_t tiles_missing = 0;  ///< not written yet
  int64_t bad = 0;            ///< chunks, LSEs of heads, and the structure, that are damaged
  int64_t bytes = 0;          ///< read back
  std::vector<std::string> bad_places;  ///< the first hundred of them, in words

  bool good() const { return bad == 0 && tiles_missing == 0 && state.complete; }
};

/// Reads an export back and compares it with its checksums: every chunk, every head's LSEs, and
/// everything else of the file. A structure that cannot be read at all is an Error(file). Throws
/// Error(interrupted) soon after a stop; calls `progress` with the tiles looked at so far.
VerifyReport verify_export(const std::filesystem::path& path, std::stop_token stop,
                           const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace attnscope
