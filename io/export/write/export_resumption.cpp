#include "io/export/write/export_resumption.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_marks.h"
#include "io/files/leftovers.h"

namespace attnscope {

namespace {

/// The first thing that OUT lacks of an export that has come to its end: somebody may have renamed
/// an OUT.part, or moved shards away. Empty: nothing.
std::string lacking(const std::filesystem::path& out, const ExportManifest& stored) {
  if (!is_marked_complete(stored, PosixFile(out, PosixFile::Mode::read_only))) {
    return "it is not marked complete";
  }
  for (const Shard& shard : stored.shards) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(with_suffix(out, ".d") / shard.file, error);
    if (error) return "its shard " + shard.file + " cannot be found";
    if (static_cast<int64_t>(bytes) != shard.bytes) {
      return fmt::format("its shard {} has {} bytes, expected {}", shard.file, bytes, shard.bytes);
    }
  }
  return "";
}

bool has_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_interrupted(const std::filesystem::path& out) {
  return has_file(with_suffix(out, ".part")) || has_file(with_suffix(out, ".d.part"));
}

/// is_complete_already(), which removes nothing here.
bool is_complete(const std::filesystem::path& out, const ExportManifest& wanted,
                 const ExportWriteOptions& options) {
  if (!options.resume || !has_file(out)) return false;
  // With --force, OUT is what an interrupted run was to replace, unless that had come to its end.
  if (options.force && is_interrupted(out)) return false;
  try {
    const ExportManifest there = read_manifest(out);
    require_sound_structure(there, PosixFile(out, PosixFile::Mode::read_only));
    const std::string difference = content_difference(there, wanted);
    if (!difference.empty()) {
      throw file_error(out.string(), "", "is another export: " + difference);
    }
    const std::string lack = lacking(out, there);
    if (!lack.empty()) {
      throw file_error(
          out.string(), "",
          "has the name of a complete export, but " + one_line(lack) + " (--force writes it anew)");
    }
    return true;
  } catch (const Error& error) {
    // --force gives up a file that is wrong, not one that could not be read for want of memory.
    if (options.force && error.code() == ErrorCode::file) return false;
    throw;
  }
}

}  // namespace

bool is_complete_already(OutputFile& file, const ExportManifest& wanted,
                         const ExportWriteOptions& options) {
  if (!is_complete(file.out(), wanted, options)) return false;
  if (!is_interrupted(file.out())) file.remove_partial();
  return true;
}

bool check_resume(const std::filesystem::path& out, RunForm form, const ExportManifest& wanted,
                  const ExportWriteOptions& options) {
  if (is_complete(out, wanted, options)) return true;
  find_interrupted(out, form, [&](const std::string& header) {
    return header_difference(header, wanted, with_suffix(out, ".journal").string());
  });
  return false;
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
