#include "io/files/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/files/input_set.h"
#include "io/files/lock_reach.h"
#include "io/files/rank_files.h"
#include "io/files/shard_folder.h"

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

/// Throws when `folder`, which may be removed, holds one of the inputs.
void refuse_folder_of_input(const path& folder, std::span<const path> inputs) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return;
  for (const path& input : inputs) {
    if (!std::filesystem::equivalent(folder_of(input), folder, error)) continue;
    throw file_error(input.string(), "", "is an input of this run, and would be destroyed");
  }
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

/// What an interrupted run left is not given up before somebody has said so, whatever it is.
void refuse_leftovers(const path& out, bool resumable) {
  const path shards = with_suffix(out, ".d.part");
  for (const path& file : {with_suffix(out, ".part"), shards}) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) continue;
    const bool is_export = file == shards || is_replaceable(with_suffix(out, ".journal"));
    throw file_error(
        file.string(), "",
        resumable
            ? "is left from an interrupted run (--resume goes on with it, --force gives it up)"
        : is_export ? "is left from an interrupted export (its own --resume goes on with it, "
                      "--force gives it up)"
                    : "is left from an interrupted run (--force replaces it)");
  }
}

}  // namespace

void OutputFile::check_target(const path& out, const OutputFileOptions& options) {
  if (out.filename().empty()) throw file_error(out.string(), "", "is not a file name");
  require_writable_folder(out);
  const path part = with_suffix(out, ".part");
  const path lock = with_suffix(out, ".lock");
  const path journal = with_suffix(out, ".journal");
  const path new_part = with_suffix(out, ".part.new");
  for (const path& file : {out, part, new_part, lock, journal}) refuse_input(file, options.inputs);
  for (const path& file : rank_files_beside(out)) refuse_input(file, options.inputs);
  refuse_folder_of_input(with_suffix(out, ".d.part"), options.inputs);
  if (is_replaceable(out) && !options.force && !options.resume) {
    throw file_error(out.string(), "", "already exists (--force replaces it)");
  }
  if (is_replaceable(lock) && FileLock::is_held(lock)) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  for (const path& file : {part, new_part, journal}) is_replaceable(file);
  if (!options.force && !options.resume) refuse_leftovers(out, options.resumable);
  require_space(out, options.bytes, disk_bytes(part));
}

OutputFile::OutputFile(path out, const OutputFileOptions& options)
    : out_(std::move(out)),
      part_(with_suffix(out_, ".part")),
      new_part_(with_suffix(out_, ".part.new")),
      journal_(with_suffix(out_, ".journal")),
      shards_(with_suffix(out_, ".d")),
      part_shards_(with_suffix(out_, ".d.part")),
      sources_(options.sources),
      resume_(options.resume),
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
  const std::string local = locks_of_one_host(with_suffix(out_, ".lock"));
  if (!local.empty()) {
    warnings_.push_back(out_.string() + ": locks of this file system (" + local +
                        ") keep away the runs of this host alone: see to it that no other host "
                        "writes the same output");
  }
  // Another run may have come and gone before the lock was ours.
  if (!options.force && !options.resume) {
    if (is_replaceable(out_)) {
      throw file_error(out_.string(), "", "already exists (--force replaces it)");
    }
    refuse_leftovers(out_, options.resumable);
  }
  if (!options.resume) remove_partial();
}

OutputFile::OutputFile(path out, const OutputFileOptions& options, Beside)
    : out_(std::move(out)),
      part_(with_suffix(out_, ".part")),
      shards_(with_suffix(out_, ".d")),
      part_shards_(with_suffix(out_, ".d.part")),
      sources_(options.sources),
      sync_(options.sync),
      keep_(true) {}

OutputFile::~OutputFile() {
  if (!committed_ && !keep_) remove_own();
}

void OutputFile::remove_own() noexcept {
  try {
    remove_shards(part_shards_);
    remove_rank_files();
  } catch (const std::exception&) {
    // It stays, and its journal, which tells the next run what it is, with it.
    return;
  }
  std::error_code ignored;
  // The journal first: a part without one is known to be worth nothing.
  for (const path& file : {journal_, part_, new_part_, with_suffix(journal_, ".tmp")}) {
    std::filesystem::remove(file, ignored);
  }
}

void OutputFile::remove_partial() {
  // Before the journal, so that a folder without one is not taken for this program's work.
  remove_shards(part_shards_);
  keep_ = false;
  remove_rank_files();
  for (const path& file : {journal_, part_, new_part_, with_suffix(journal_, ".tmp")}) {
    remove_file(file);
  }
}

void OutputFile::remove_rank_files() { attnscope::remove_rank_files(out_); }

void OutputFile::remove_part() {
  for (const path& file : {part_, new_part_}) remove_file(file);
}

void OutputFile::create_part() { data_ = PosixFile(part_, PosixFile::Mode::create); }

void OutputFile::open_new_part(int64_t bytes) {
  data_ = PosixFile(new_part_, PosixFile::Mode::existing);
  if (data_.allocate(bytes)) return;
  warnings_.push_back(out_.string() +
                      ": the file system cannot reserve space; the disk may fill up before the "
                      "export is complete (--resume goes on then)");
}

void OutputFile::require_written(const path& file, const FileIdentity& written) {
  if (file_identity(file) == written) return;
  // Whatever stands there now is not ours to remove.
  keep_ = true;
  throw file_error(file.string(), "",
                   "is not the file that this run wrote: somebody put another in its place");
}

void OutputFile::publish_part() {
  if (sync_) data_.sync();
  require_written(new_part_, data_.identity());
  rename_file(new_part_, part_, true);
  data_.set_path(part_);
  if (sync_) sync_folder_of(part_);
}

void OutputFile::reopen_part() {
  keep_ = true;
  data_ = PosixFile(part_, PosixFile::Mode::existing);
}

void OutputFile::sync_data() const {
  if (sync_) data_.sync_data();
}

void OutputFile::require_sources_unchanged() const {
  if (sources_) sources_->require_unchanged();
}

void OutputFile::require_source_reads_unchanged() const {
  if (sources_) sources_->require_reads_unchanged();
}

void OutputFile::commit() {
  if (!data_.is_open()) data_ = PosixFile(part_, PosixFile::Mode::existing);
  give_name(part_);
}

void OutputFile::commit_new_part() { give_name(new_part_); }

void OutputFile::give_name(const path& from) {
  require_sources_unchanged();
  if (sync_) data_.sync();
  const FileIdentity written = data_.identity();
  data_.close();
  require_written(from, written);
  rename_file(from, out_, force_);
  committed_ = true;
  // A name can be taken between the look at it and the rename.
  require_written(out_, written);
  std::string late;
  try {
    if (sync_) sync_folder_of(out_);
  } catch (const Error& error) {
    late = error.what();
  }
  // A journal without a part means nothing, so a kill here does no harm.
  remove_file(journal_);
  // As long as anything else is left, OUT.part says what it is of.
  if (from != part_) {
    remove_rank_files();
    remove_file(part_);
  }
  if (!late.empty()) {
    throw file_error(out_.string(), "",
                     "complete, but its name may not survive a power loss: " + late);
  }
}

}  // namespace attnscope
