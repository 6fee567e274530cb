#include "io/export_file.h"

#include "core/error.h"

namespace attnscope {
namespace {

using std::filesystem::file_status;
using std::filesystem::path;

file_status status_of(const path& file) {
  std::error_code error;
  const file_status status = std::filesystem::symlink_status(file, error);
  if (error && status.type() != std::filesystem::file_type::not_found) {
    throw errno_error(file, "cannot be examined", error.value());
  }
  return status;
}

}  // namespace

path ExportFile::with_suffix(const path& file, const char* suffix) {
  path result = file;
  result += suffix;
  return result;
}

void ExportFile::check_target(const path& out, bool force, int64_t bytes) {
  if (out.filename().empty()) throw file_error(out.string(), "", "is not a file name");
  require_writable_folder(out);
  const file_status status = status_of(out);
  if (std::filesystem::is_directory(status)) throw file_error(out.string(), "", "is a folder");
  if (std::filesystem::exists(status) && !force) {
    throw file_error(out.string(), "", "already exists (--force replaces it)");
  }
  const path part = with_suffix(out, ".part");
  const file_status part_status = status_of(part);
  if (!std::filesystem::exists(part_status)) return require_space(out, bytes);
  if (FileLock::is_held(with_suffix(out, ".lock"))) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  if (std::filesystem::is_directory(part_status)) {
    throw file_error(part.string(), "", "is a folder");
  }
  if (!force) {
    throw file_error(part.string(), "", "is left from an interrupted run (--force replaces it)");
  }
  require_space(out, bytes, disk_bytes(part));
}

ExportFile::ExportFile(path out, bool force, bool sync, int64_t bytes)
    : out_(std::move(out)), part_(with_suffix(out_, ".part")), force_(force), sync_(sync) {
  check_target(out_, force_, bytes);
  lock_.emplace(with_suffix(out_, ".lock"), out_);
  // Another run may have come and gone before the lock was ours.
  if (!force_ && std::filesystem::exists(status_of(out_))) {
    throw file_error(out_.string(), "", "already exists (--force replaces it)");
  }
  if (std::filesystem::exists(status_of(part_))) {
    std::error_code error;
    std::filesystem::remove(part_, error);
    if (error) throw errno_error(part_, "cannot be removed", error.value());
  }
}

ExportFile::~ExportFile() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void ExportFile::open_part(int64_t bytes) {
  data_ = PosixFile(part_, PosixFile::Mode::existing);
  data_.allocate(bytes);
}

void ExportFile::sync_data() const {
  if (sync_) data_.sync_data();
}

void ExportFile::commit() {
  if (sync_) data_.sync();
  data_.close();
  rename_file(part_, out_, force_);
  committed_ = true;
  if (!sync_) return;
  try {
    sync_folder_of(out_);
  } catch (const Error& error) {
    throw file_error(
        out_.string(), "",
        std::string("complete, but its name may not survive a power loss: ") + error.what());
  }
}

}  // namespace attnscope
