#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/files/file_lock.h"
#include "io/files/posix_file.h"

namespace attnscope {

class InputSet;
class OutputFile;

/// The use that an output makes of OUT.d, the folder of an export in shards.
enum class ShardFolder : uint8_t {
  unused,    ///< nothing
  replaced,  ///< shards of an older OUT are removed from it
  written    ///< its own shards come there
};

/// How an output is to be treated; see OutputFile.
struct OutputFileOptions {
  bool force = false;      ///< replace OUT at the end; what an interrupted run left is given up
  bool sync = true;        ///< make everything durable before OUT takes its name
  bool resumable = false;  ///< there is a --resume for what a killed run leaves
  bool resume = false;     ///< go on with OUT.part; what is left is not given up, `force` or not
  int64_t bytes = 0;       ///< that the file will take at least
  ShardFolder shards = ShardFolder::unused;
  /// Called with the lock held, before what an interrupted run left beside OUT is given up: for
  /// what it left elsewhere. May be null.
  void (*give_up)(const OutputFile& file) = nullptr;
  /// Files that are read, and folders of captures: the output must not replace one of the files,
  /// nor stand in one of the folders. Borrowed for the call.
  std::span<const std::filesystem::path> inputs{};
  /// The files that the output is made from: OUT takes its name only where all that was read of
  /// them is as it was. Null: nothing that could change.
  std::shared_ptr<const InputSet> sources = nullptr;
};

/// The life of an output on disk: OUT.lock is held throughout, everything is written to OUT.part,
/// and commit() gives it its name. Destroyed before that, what this run created is removed, unless
/// keep_partial() said that it is worth keeping; OUT is as it was.
///
/// Order of calls for a file that grows from the front: constructor, create_part(), write_at() …,
/// commit(). For one that is created by a library: constructor, (somebody creates new_part_path()
/// and closes it), open_new_part(), write_at() …, publish_part(), write_at() …, commit(). To resume
/// one: constructor, reopen_part(), write_at() …, commit(). write_at, read_at and sync_data are
/// thread-safe; the rest is not.
class OutputFile {
 public:
  /// The checks of the constructor; creates nothing. Throws Error(file) when OUT exists without
  /// `force` and `resume`, what an interrupted run left (io/files/leftovers.h) without either, or,
  /// of a resumable output, a journal that is somebody else's without `force`; when one of these
  /// files is anything but a regular file, OUT.d.part or, as `shards` says, OUT.d anything but a
  /// folder; when one of them is an input or holds one, when OUT would take the name of an export
  /// whose shards stay, or OUT would stand in a folder that is read; when another run writes them;
  /// when the folder is missing or cannot be written. Error(resource) when the disk has no room.
  static void check_target(const std::filesystem::path& out, const OutputFileOptions& options);

  /// Takes the lock. What an interrupted run left is removed with `force`, unless with `resume`
  /// too: then it stays as it is, to be compared (take_up_interrupted).
  OutputFile(std::filesystem::path out, const OutputFileOptions& options);
  /// Of a run of several processes, one of those that write to OUT.part beside the one that holds
  /// the lock: reopen_part(), write_at() …; it gives no names and removes nothing.
  struct Beside {};
  OutputFile(std::filesystem::path out, const OutputFileOptions& options, Beside);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  const std::filesystem::path& out() const { return out_; }
  const std::filesystem::path& part_path() const { return part_; }
  const std::filesystem::path& journal_path() const { return journal_; }
  /// Where a library builds the file: a kill meanwhile leaves no OUT.part that cannot be opened.
  const std::filesystem::path& new_part_path() const { return new_part_; }
  /// The folders of an export in shards: OUT.d, and OUT.d.part until it is complete.
  const std::filesystem::path& shards_path() const { return shards_; }
  const std::filesystem::path& part_shards_path() const { return part_shards_; }
  /// True where this run is to go on with what an interrupted run left.
  bool resumes() const { return resume_; }

  /// Removes what an earlier run left: OUT.d.part, OUT.part and their journal.
  void remove_partial();
  /// Removes OUT.part and what it was made of, not the journal.
  void remove_part();
  /// Creates OUT.part, empty.
  void create_part();
  /// Opens what was built at new_part_path() and reserves `bytes` bytes of disk for it. Throws
  /// Error(resource) when the disk has too few.
  void open_new_part(int64_t bytes);
  /// Makes it durable (with `sync`) and gives it the name OUT.part.
  void publish_part();
  /// Puts what other processes of a run left beside OUT (io/files/rank_files.h) away.
  void remove_rank_files();
  /// Opens OUT.part as it is; from now on it is kept.
  void reopen_part();
  /// OUT.part and OUT.journal stay when this is destroyed. Thread-safe.
  void keep_partial() { keep_ = true; }

  /// Warnings for the user about what this file system cannot do (lock files, reserve space).
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool is_open() const { return data_.is_open(); }
  /// The open file.
  const PosixFile& data() const { return data_; }
  void write_at(std::span<const std::byte> bytes, int64_t offset) const {
    data_.write_at(bytes, offset);
  }
  void read_at(std::span<std::byte> bytes, int64_t offset) const { data_.read_at(bytes, offset); }
  /// See PosixFile. What is open when this is called, and not what is opened later.
  bool bypass_page_cache() { return data_.bypass_page_cache(); }
  /// Brings what was written so far to the disk before anything that is written later; does nothing
  /// without `sync`.
  void sync_data() const;
  /// Throw Error(file) where one of the sources was changed: any that is in use; or any of what
  /// was read since the last such look, fast, after which what was made of it may be committed.
  /// Thread-safe.
  void require_sources_unchanged() const;
  void require_source_reads_unchanged() const;
  /// Makes OUT.part durable (with `sync`), renames it to OUT and removes the journal. Throws
  /// Error(file) where a source was changed, or the name OUT.part is another file's by now, which
  /// is left alone.
  void commit();
  /// commit() of the file that open_new_part() opened; OUT.part, which held the work until now,
  /// goes when OUT has its name.
  void commit_new_part();

 private:
  /// Of an output without --resume, somebody else's OUT.journal stays.
  bool is_own_to_remove(const std::filesystem::path& file) const;
  void give_name(const std::filesystem::path& from);
  void require_written(const std::filesystem::path& file, const FileIdentity& written);
  void remove_own() noexcept;

  std::filesystem::path out_;
  std::filesystem::path part_;
  std::filesystem::path new_part_;
  std::filesystem::path journal_;
  std::filesystem::path shards_;
  std::filesystem::path part_shards_;
  std::shared_ptr<const InputSet> sources_;
  bool resumable_ = false;
  bool resume_ = false;
  bool force_ = false;
  bool sync_ = true;
  bool committed_ = false;
  std::atomic<bool> keep_{false};
  std::vector<std::string> warnings_;
  std::optional<FileLock> lock_;
  PosixFile data_;
};

}  // namespace attnscope
