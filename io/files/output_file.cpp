#include "io/files/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/hdf5_magic.h"
#include "io/files/input_guard.h"
#include "io/files/input_set.h"
#include "io/files/leftovers.h"
#include "io/files/lock_reach.h"
#include "io/files/rank_files.h"
#include "io/files/shard_folder.h"

namespace attnscope {
namespace {

using std::filesystem::path;

void remove_file(const path& file) {
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
    throw errno_error(file, "cannot be removed", errno);
  }
}

void check_leftovers(const path& out, const OutputFileOptions& options) {
  if (options.force) return;
  if (!options.resume) refuse_leftovers(out, options.resumable);
  if (options.resumable) refuse_foreign_leftovers(out);
}

bool is_folder_itself(const path& name) {
  struct stat info {};
  return ::lstat(name.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Throws where OUT may be an export that names shards in OUT.d, which nobody would find then.
void require_no_orphans(const path& out, const path& folder) {
  if (beginning_of_file(out, kHdf5Magic.size()) != kHdf5Magic) return;
  for (const std::string& name : files_in_folder(folder)) {
    if (!has_shard_name(name)) continue;
    throw file_error(folder.string(), "",
                     "holds shards of an export, which no file would name any more: remove them "
                     "with " +
                         out.filename().string() + ", or choose another name");
  }
}

/// OUT.d and OUT.d.part are folders themselves: through a link others' files would go. They hold
/// nothing that is read, nor what an export would not put there.
void check_shard_folders(const path& out, const OutputFileOptions& options) {
  const path part = with_suffix(out, ".d.part");
  if (file_identity(part)) {
    refuse_folder_of_input(part, options.inputs);
    if (!is_folder_itself(part)) throw file_error(part.string(), "", "is no folder");
    // A run that resumes looks at the folder's files later, when it knows whose they are.
    if (options.force && !options.resume) require_shards_alone(part);
  }
  const path folder = with_suffix(out, ".d");
  if (options.shards == ShardFolder::unused && options.force) require_no_orphans(out, folder);
  if (options.shards == ShardFolder::unused || !file_identity(folder)) return;
  const bool written = options.shards == ShardFolder::written;
  if (written) refuse_folder_of_input(folder, options.inputs);
  if (!is_folder_itself(folder) && (written || file_identity(out))) {
    throw file_error(folder.string(), "",
                     "is no folder of this export's own: a link, or no folder at all, and nothing "
                     "is written or removed through it");
  }
  if (written && !options.force && !options.resume && !file_identity(out)) {
    throw file_error(folder.string(), "",
                     "already exists (--force writes into it; what no OUT names stays)");
  }
}

}  // namespace

void OutputFile::check_target(const path& out, const OutputFileOptions& options) {
  if (out.filename().empty()) throw file_error(out.string(), "", "is not a file name");
  require_writable_folder(out);
  const path lock = with_suffix(out, ".lock");
  const std::vector<path> leftovers = leftover_names(out);
  for (const path& file : {out, lock}) refuse_input(file, options.inputs);
  for (const path& file : leftovers) refuse_input(file, options.inputs);
  refuse_within_input(out, options.inputs);
  check_shard_folders(out, options);
  if (is_replaceable(out) && !options.force && !options.resume) {
    throw file_error(out.string(), "", "already exists (--force replaces it)");
  }
  if (is_replaceable(lock) && FileLock::is_held(lock)) {
    throw file_error(out.string(), "", "is being written by another run");
  }
  for (const path& file : leftovers) is_replaceable(file);
  check_leftovers(out, options);
  require_space(out, options.bytes, disk_bytes(with_suffix(out, ".part")));
}

OutputFile::OutputFile(path out, const OutputFileOptions& options)
    : out_(std::move(out)),
      part_(with_suffix(out_, ".part")),
      new_part_(with_suffix(out_, ".part.new")),
      journal_(with_suffix(out_, ".journal")),
      shards_(with_suffix(out_, ".d")),
      part_shards_(with_suffix(out_, ".d.part")),
      sources_(options.sources),
      resumable_(options.resumable),
      resume_(options.resume),
      force_(options.force),
      sync_(options.sync),
      // This run must not remove the work that it is to resume.
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
  }
  check_leftovers(out_, options);
  if (options.resume) return;
  if (options.give_up != nullptr) options.give_up(*this);
  remove_partial();
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
    if (is_own_to_remove(file)) std::filesystem::remove(file, ignored);
  }
}

void OutputFile::remove_partial() {
  // Before the journal, so that a folder without one is not taken for this program's work.
  remove_shards(part_shards_);
  keep_ = false;
  remove_rank_files();
  for (const path& file : {journal_, part_, new_part_, with_suffix(journal_, ".tmp")}) {
    if (is_own_to_remove(file)) remove_file(file);
  }
}

bool OutputFile::is_own_to_remove(const path& file) const {
  return resumable_ || file == part_ || file == new_part_ || is_own_leftover(file);
}

void OutputFile::remove_rank_files() {
  for (const path& file : rank_files_beside(out_)) {
    if (is_own_to_remove(file)) remove_file(file);
  }
}

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
  if (is_own_to_remove(journal_)) remove_file(journal_);
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
