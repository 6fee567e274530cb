#include "io/export/write/export_resumption.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "io/export/format/export_header.h"

namespace attnscope {

bool is_complete_already(OutputFile& file, const ExportManifest& wanted,
                         const ExportWriteOptions& options) {
  const auto is_there = [](const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
  };
  if (!options.resume || !is_there(file.out())) return false;
  // With --force, OUT is what an interrupted run was to replace, unless that had come to its end.
  const bool interrupted = is_there(file.part_path()) || is_there(file.part_shards_path());
  if (options.force && interrupted) return false;
  try {
    const std::string difference = content_difference(read_manifest(file.out()), wanted);
    if (difference.empty()) {
      if (!interrupted) file.remove_partial();
      return true;
    }
    throw file_error(file.out().string(), "", "is another export: " + difference);
  } catch (const Error&) {
    if (options.force) return false;
    throw;
  }
}

std::optional<JournalContent> take_up_same_export(OutputFile& file, RunForm form,
                                                  const ExportManifest& wanted) {
  return take_up_interrupted(file, form, [&](const std::string& header) {
    return header_difference(header, wanted, file.journal_path().string());
  });
}

void require_all_tiles(const OutputFile& file, int64_t done, int64_t total) {
  if (done == total) return;
  throw file_error(
      file.out().string(), "",
      fmt::format("{} of {} tiles were computed, so it stays incomplete", done, total));
}

}  // namespace attnscope
