#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/stream/tile_sink.h"
#include "io/export/format/export_journal.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/output_file.h"

namespace attnscope {

/// How the file is written; decides nothing about its content.
struct ExportWriteOptions {
  /// Replace an existing file (only once the new one is complete); without `resume`, give up what
  /// an interrupted run left.
  bool force = false;
  bool sync = true;  ///< commits and the finished file are made durable
  /// Go on with what an interrupted run left, or start afresh; what another run left is an error.
  bool resume = false;
  bool verify_all = false;   ///< resuming, check all that is there, not the last GiB alone
  JournalCommits commits{};  ///< when what was written is committed
  /// With `sync`, entries of so many bytes go past the page cache: what is smaller, the cache takes
  /// while others compute, and it reaches the disk in larger pieces from there.
  int64_t direct_bytes = int64_t{1} << 30;
  /// Files that are read: the export must not replace one of them.
  std::vector<std::filesystem::path> inputs{};
  /// The files that the maps are computed from (OutputFileOptions): where one changes, nothing that
  /// was computed since the last commit is committed, and the export does not become complete.
  std::shared_ptr<const InputSet> sources = nullptr;

  /// The options of the export's own file, which takes `bytes` at least. `resumable`: --resume can
  /// go on with what a killed run leaves. Borrows the inputs.
  OutputFileOptions for_file(int64_t bytes, bool resumable = true) const {
    return {.force = force,
            .sync = sync,
            .resumable = resumable,
            .resume = resume,
            .bytes = bytes,
            .shards = ShardFolder::replaced,
            .give_up = &remove_given_up_shards,
            .inputs = inputs,
            .sources = sources};
  }
  /// Of an export in shards.
  OutputFileOptions for_shards() const {
    OutputFileOptions file = for_file(0);
    file.shards = ShardFolder::written;
    return file;
  }
};

/// The work of earlier runs that a resumed export found.
struct ExportResume {
  bool complete = false;      ///< OUT is there, with the same content: nothing is to be done
  bool resumed = false;       ///< OUT.part is gone on with
  int64_t tiles_kept = 0;     ///< complete and, as far as checked, sound
  int64_t tiles_dropped = 0;  ///< that the file does not hold as the journal says
  int64_t bytes_checked = 0;
};

/// A TileSink that writes an export, whatever its form.
class ExportSink : public TileSink {
 public:
  virtual const ExportResume& resume() const = 0;
  /// Warnings for the user about what the file system cannot do (lock files, reserve space).
  virtual const std::vector<std::string>& warnings() const = 0;
  /// Notes for the user once the export is complete: of other files in OUT.d.
  virtual const std::vector<std::string>& notes() const = 0;
  /// The stream to run: one task a selected head, in the file's order. Valid while this lives.
  virtual std::span<const HeadTask> tasks() const = 0;
  /// True where all of a tile of tasks()[task_index] is in the file already. Thread-safe.
  virtual bool has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const = 0;
  /// Commits everything that can be, so that it can be resumed. Throws Error(file).
  virtual void suspend() = 0;
  /// Where what is complete stands until the end.
  virtual std::filesystem::path partial_path() const = 0;
  /// Tiles complete by now, and in all, as `info` counts them.
  virtual int64_t tiles_done() const = 0;
  /// Those that are committed: what --resume would find.
  virtual int64_t tiles_kept() const = 0;
  virtual int64_t tiles_total() const = 0;
  virtual int64_t bytes_written() const = 0;
};

}  // namespace attnscope
