#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/export/format/export_plan.h"
#include "io/export/format/sums_log.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// The message of the process that made an export's file to its other writers. A value.
struct ExportInvitation {
  bool complete = false;  ///< OUT is there already: nothing is to be done
  bool resumed = false;
  std::string token;       ///< stands in OUT.sums.0: who reads it sees the same folder
  uint64_t structure = 0;  ///< the file's checksum of its structure
  ExportPlaces places;
  std::vector<uint64_t> done;  ///< CompletedTiles::words() of earlier runs

  /// For exchanges between processes of one program.
  std::string text() const;
  static ExportInvitation parse(const std::string& text);
};

/// An export that several processes write. The first one makes the file, holds its lock
/// and has the sink's warnings, notes and resume(); the others join it, each with a journal and a
/// log of small pieces of its own beside it (io/files/rank_files.h), and write whole chunks to it
/// and nothing else; of an export in shards, whole shards. tiles_done() is what this process did,
/// and of the first one what was there before. end() is not to be called.
class SharedExport : public ExportSink {
 public:
  /// Of an export in shards: runs of tasks() that one process has to do whole, those of the groups
  /// that earlier runs have not completed, ascending. Nothing of others, whose rows may be
  /// anybody's.
  virtual std::optional<std::vector<IndexRange>> whole_runs() const { return std::nullopt; }
  /// Before the tiles of such a run come: it is this process's. Runs are taken in ascending order.
  virtual void take_run(IndexRange) {}
  /// Of the first process, before the first tile: from now on what is written stays for --resume.
  virtual ExportInvitation invite() = 0;
  /// After the last tile: everything is durable, and the first process may gather it. Returns how
  /// many small pieces, or shards, this process leaves. Throws Error(file), also where a source was
  /// changed.
  virtual int64_t hand_in() = 0;
  /// Of the first process, when all have handed in: puts in what the others left, which is to be as
  /// much as they said, and marks the file complete, if all `tiles` of it were done.
  virtual void finish(const PromisedSums& left, int64_t tiles) = 0;
};

/// The first process's. Throws what make_export() throws.
std::unique_ptr<SharedExport> make_shared_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options);
/// The others', `rank` from 1 on. Throws Error(file) where the file is not to be seen from here
/// within a minute.
std::unique_ptr<SharedExport> join_shared_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options,
                                                 const ExportInvitation& invitation, int rank);

}  // namespace attnscope
