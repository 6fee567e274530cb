#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/run/stats_jobs.h"
#include "cli/run/where_question.h"
#include "core/stream/tile_backend.h"
#include "io/capture/cache_file.h"
#include "io/capture/capture.h"

namespace attnscope {

/// Keeps the numbers of heads on disk, a file stats-KEY.json a call: an attnscope-stats/1 of the
/// heads that were measured so far, with a checksum. All that decides the numbers is in the key, so
/// a file never has to be judged stale. One thread's.
class KeptNumbers {
 public:
  /// `call_hashes` as of Capture::call_hashes(), one a call, over all its heads.
  KeptNumbers(std::vector<std::filesystem::path> folders, std::vector<SelectedCall> calls,
              std::span<const std::string> call_hashes, const StatsChoice& choice,
              const TileBackend& backend);

  bool enabled() const { return !folders_.all().empty(); }
  /// The records of all files that can be read; a damaged one is none.
  HeadRecords load() const;
  /// Writes the files of calls of which `fresh` has a record, with those of `known`. Returns what
  /// went wrong in every folder; empty: nothing.
  std::string store(const HeadRecords& known, const HeadRecords& fresh);

 private:
  CacheFolders folders_;
  std::vector<SelectedCall> calls_;  ///< whole
  std::vector<std::string> names_;   ///< of the files, one a call
};

}  // namespace attnscope
