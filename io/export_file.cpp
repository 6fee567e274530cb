#include "io/export_file.h"

#include <sys/stat.h>
#include <unistd.h>

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

void remove_file(const path& file) {
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    throw errno_error(file, "cannot be removed", errno);
  }
}

/// The journal of an earlier run is not removed before somebody has said so.
void refuse_shards(const path& out, const ExportFileOptions& options) {
  const path shards = with_suffix(out, ".d.part");
  std::error_code error;
  if (options.force || !std::filesystem::exists(shards, error)) return;
  if (options.in_shards && options.resume) return;
  throw file_error(shards.string(), "",
                   options.in_shards ? "is left from an interrupted run (--resume goes on with it, "
                                       "--force gives it up)"
                                     : "is left from an interrupted export in shards (--resume "
                                       "with its options goes on with it, --force gives it up)");
}

}  // namespace

void ExportFile::check_target(const path& out, const ExportFileOptions& options) {
  if (out.filename().empty()) throw file_error(out.string(), "", "is not a file name");
  require_writable_folder(out);
  const path part = with_suffix(out, ".part");
  const path lock = with_suffix(out, ".lock");
  const path journal = with_suffix(out, ".journal");
  const path new_part = with_suffix(out, ".part.new");
  for (const path& file : {out, part, new_part, lock, journal}) refuse_input(file, options.inputs);
  if (is_replaceable(out) && !options.force && !options.resume) {
    throw file_error(out.string(), "", "already exists (--force replaces it)");
  }
  if (is_replaceable(lock) && FileLock::is_held(lock)) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  for (const path& file : {new_part, journal}) is_replaceable(file);
  // Whoever only checks may not know yet whether there will be shards.
  if (options.in_shards) refuse_shards(out, options);
  if (!is_replaceable(part)) return require_space(out, options.bytes);
  if (!options.force && !options.resume) {
    throw file_error(part.string(), "",
                     options.resumable ? "is left from an interrupted run (--resume goes on with "
                                         "it, --force gives it up)"
                                       : "is left from an interrupted run (--force replaces it)");
  }
  require_space(out, options.bytes, disk_bytes(part));
}

ExportFile::ExportFile(path out, const ExportFileOptions& options)
    : out_(std::move(out)),
      part_(with_suffix(out_, ".part")),
      new_part_(with_suffix(out_, ".part.new")),
      journal_(with_suffix(out_, ".journal")),
      force_(options.force),
      sync_(options.sync),
      // What is to be resumed is not this run's to remove.
      keep_(options.resume) {
  check_target(out_, options);
  lock_.emplace(with_suffix(out_, ".lock"), out_);
  if (lock_->without_locks()) {
    warnings_.push_back(out_.string() +
                        ": the file system has no locks; a file OUT.lock.owner keeps writers "
                        "apart, and may have to be removed by hand after a crash");
  }
  // Another run may have come and gone before the lock was ours.
  if (!options.force && !options.resume && is_replaceable(out_)) {
    throw file_error(out_.string(), "", "already exists (--force replaces it)");
  }
  refuse_shards(out_, options);
  if (!options.resume) remove_partial();
}

ExportFile::~ExportFile() {
  if (!committed_ && !keep_) remove_own();
}

void ExportFile::remove_own() noexcept {
  std::error_code ignored;
  // The journal first: a part without one is known to be worth nothing.
  for (const path& file : {journal_, part_, new_part_, with_suffix(journal_, ".tmp")}) {
    std::filesystem::remove(file, ignored);
  }
}

void ExportFile::remove_partial() {
  keep_ = false;
  for (const path& file : {journal_, part_, new_part_, with_suffix(journal_, ".tmp")}) {
    remove_file(file);
  }
}

void ExportFile::remove_part() {
  for (const path& file : {part_, new_part_}) remove_file(file);
}

void ExportFile::create_part() { data_ = PosixFile(part_, PosixFile::Mode::create); }

void ExportFile::open_new_part(int64_t bytes) {
  data_ = PosixFile(new_part_, PosixFile::Mode::existing);
  if (data_.allocate(bytes)) return;
  warnings_.push_back(out_.string() +
                      ": the file system cannot reserve space; the disk may fill up before the "
                      "export is complete (--resume goes on then)");
}

void ExportFile::publish_part() {
  if (sync_) data_.sync();
  rename_file(new_part_, part_, true);
  data_.set_path(part_);
  if (sync_) sync_folder_of(part_);
}

void ExportFile::reopen_part() {
  keep_ = true;
  data_ = PosixFile(part_, PosixFile::Mode::existing);
}

void ExportFile::sync_data() const {
  if (sync_) data_.sync_data();
}

void ExportFile::commit() {
  if (!data_.is_open()) data_ = PosixFile(part_, PosixFile::Mode::existing);
  if (sync_) data_.sync();
  data_.close();
  rename_file(part_, out_, force_);
  committed_ = true;
  std::string late;
  try {
    if (sync_) sync_folder_of(out_);
  } catch (const Error& error) {
    late = error.what();
  }
  // A journal without a part means nothing, so a kill here does no harm.
  remove_file(journal_);
  if (!late.empty()) {
    throw file_error(out_.string(), "",
                     "complete, but its name may not survive a power loss: " + late);
  }
}

}  // namespace attnscope
