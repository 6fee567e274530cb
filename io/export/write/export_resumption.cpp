#include "io/export/write/export_resumption.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "io/export/format/export_header.h"

namespace attnscope {

bool is_complete_already(const OutputFile& file, const ExportManifest& wanted,
                         const ExportWriteOptions& options) {
  std::error_code error;
  if (!options.resume || options.force || !std::filesystem::exists(file.out(), error)) return false;
  const std::string difference = content_difference(read_manifest(file.out()), wanted);
  if (!difference.empty()) {
    throw file_error(file.out().string(), "", "is another export: " + difference);
  }
  return true;
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
