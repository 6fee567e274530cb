#include "io/export_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/error.h"

namespace attnscope {
namespace {

using std::filesystem::path;

path with_suffix(const path& file, const char* suffix) {
  path result = file;
  result += suffix;
  return result;
}

/// Whether something has this name. What cannot be replaced without harm (a folder, a device, a
/// pipe, a link to a file elsewhere) is an error.
bool is_replaceable(const path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    throw errno_error(file, "cannot be examined", errno);
  }
  if (S_ISREG(info.st_mode)) return true;
  if (S_ISDIR(info.st_mode)) throw file_error(file.string(), "", "is a folder");
  if (S_ISLNK(info.st_mode)) {
    throw file_error(file.string(), "", "is a symbolic link: give the name of the file itself");
  }
  throw file_error(file.string(), "", "is no regular file, and is never replaced");
}

/// Throws when `file` is one of the inputs, by whatever name.
void refuse_input(const path& file, std::span<const path> inputs) {
  struct stat target {};
  if (::stat(file.c_str(), &target) != 0) return;
  for (const path& input : inputs) {
    struct stat info {};
    if (::stat(input.c_str(), &info) == 0 && info.st_dev == target.st_dev &&
        info.st_ino == target.st_ino) {
      throw file_error(file.string(), "", "is an input of this run, and would be destroyed");
    }
  }
}

}  // namespace

void ExportFile::check_target(const path& out, bool force, int64_t bytes,
                              std::span<const path> inputs) {
  if (out.filename().empty()) throw file_error(out.string(), "", "is not a file name");
  require_writable_folder(out);
  const path part = with_suffix(out, ".part");
  const path lock = with_suffix(out, ".lock");
  for (const path& file : {out, part, lock}) refuse_input(file, inputs);
  if (is_replaceable(out) && !force) {
    throw file_error(out.string(), "", "already exists (--force replaces it)");
  }
  if (is_replaceable(lock) && FileLock::is_held(lock)) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  if (!is_replaceable(part)) return require_space(out, bytes);
  if (!force) {
    throw file_error(part.string(), "", "is left from an interrupted run (--force replaces it)");
  }
  require_space(out, bytes, disk_bytes(part));
}

ExportFile::ExportFile(path out, bool force, bool sync, int64_t bytes, std::span<const path> inputs)
    : out_(std::move(out)), part_(with_suffix(out_, ".part")), force_(force), sync_(sync) {
  check_target(out_, force_, bytes, inputs);
  lock_.emplace(with_suffix(out_, ".lock"), out_);
  // Another run may have come and gone before the lock was ours.
  if (!force_ && is_replaceable(out_)) {
    throw file_error(out_.string(), "", "already exists (--force replaces it)");
  }
  if (is_replaceable(part_)) {
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

void ExportFile::create_part() { data_ = PosixFile(part_, PosixFile::Mode::create); }

void ExportFile::sync_data() const {
  if (sync_) data_.sync_data();
}

void ExportFile::commit() {
  if (!data_.is_open()) data_ = PosixFile(part_, PosixFile::Mode::existing);
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
