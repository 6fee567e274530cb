#include "io/capture/capture_folder.h"

#include <string>

#include "core/base/error.h"
#include "io/files/input_guard.h"
#include "io/files/output_file.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

fs::path with_suffix(const fs::path& folder, const char* suffix) {
  fs::path result = folder;
  result += suffix;
  return result;
}

/// "dump/" names the same folder as "dump".
fs::path without_slash(const fs::path& out) { return out.has_filename() ? out : out.parent_path(); }

bool is_there(const fs::path& path) {
  return fs::symlink_status(path).type() != fs::file_type::not_found;
}

/// frame0.png … as this program and the capture scripts name them.
bool is_frame_picture(const fs::path& name) {
  const std::string stem = name.stem().string();
  return name.extension() == ".png" && stem.size() > 5 && stem.rfind("frame", 0) == 0 &&
         stem.find_first_not_of("0123456789", 5) == std::string::npos;
}

bool belongs_to_capture(const fs::directory_entry& entry) {
  if (entry.is_symlink()) return false;
  fs::path name = entry.path().filename();
  // The caches that this program keeps beside a capture.
  if (entry.is_directory()) return name == ".attnscope";
  // A killed run leaves files with these endings behind.
  if (name.extension() == ".part" || name.extension() == ".lock") name = name.stem();
  return entry.is_regular_file() &&
         (name == "capture.json" || name.extension() == ".safetensors" || is_frame_picture(name));
}

/// Only a folder that nobody misses is ever deleted.
void require_replaceable(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder))) {
    throw file_error(folder.string(), "", "is no folder, and is not replaced by one");
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (belongs_to_capture(entry)) continue;
    throw file_error(folder.string(), entry.path().filename().string(),
                     "is no part of a capture, so the folder is not replaced");
  }
}

void check_folders(const fs::path& out, bool force) {
  for (const fs::path& folder : {out, with_suffix(out, ".part")}) {
    if (!is_there(folder)) continue;
    if (!force) {
      throw file_error(folder.string(), "",
                       folder == out ? "already exists (--force replaces it)"
                                     : "is left from an interrupted run (--force replaces it)");
    }
    require_replaceable(folder);
  }
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw errno_error(folder, "cannot be removed", error.value());
}

}  // namespace

void CaptureFolder::check_target(const fs::path& name, bool force,
                                 std::span<const fs::path> inputs) {
  const fs::path out = without_slash(name);
  if (out.filename().empty() || out.filename() == "." || out.filename() == "..") {
    throw file_error(name.string(), "", "is not a name for a new folder");
  }
  require_writable_folder(out);
  refuse_within_input(out, inputs);
  for (const fs::path& folder : {out, with_suffix(out, ".part")}) {
    refuse_folder_of_input(folder, inputs);
  }
  if (FileLock::is_held(with_suffix(out, ".lock"))) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  check_folders(out, force);
}

CaptureFolder::CaptureFolder(const fs::path& out, bool force)
    : out_(without_slash(out)),
      part_(with_suffix(out_, ".part")),
      lock_((check_target(out_, force), with_suffix(out_, ".lock")), out_) {
  // Another run may have come and gone before the lock was ours.
  check_folders(out_, force);
  remove_folder(part_);
  std::error_code error;
  if (!fs::create_directory(part_, error)) {
    throw errno_error(part_, "cannot be created", error.value());
  }
}

CaptureFolder::~CaptureFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(part_, ignored);
}

void CaptureFolder::commit() {
  sync_folder_of(part_ / "capture.json");
  if (is_there(out_)) remove_folder(out_);
  rename_file(part_, out_, false);
  committed_ = true;
  sync_folder_of(out_);
}

bool is_single_capture_file(const fs::path& out) { return out.extension() == ".safetensors"; }

void check_capture_target(const fs::path& out, const CaptureTarget& target) {
  if (is_single_capture_file(out)) {
    return OutputFile::check_target(
        out, {.force = target.force, .bytes = target.bytes, .inputs = target.inputs});
  }
  CaptureFolder::check_target(out, target.force, target.inputs);
  require_space(without_slash(out), target.bytes);
}

}  // namespace attnscope
