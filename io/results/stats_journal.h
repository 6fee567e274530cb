#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/heads/head_record.h"
#include "io/files/group_sync.h"
#include "io/files/output_file.h"

namespace attnscope {

/// An output that is made of one record a head, and of all of them at the end. Until then OUT.part
/// is a list of lines: what the run computes, then a record each, so that whatever ends the run,
/// finished heads are kept for `resume`. Not thread-safe.
class StatsJournal {
 public:
  /// What a loss of power may cost. Small heads are done by the hundred in that time: a sync for
  /// each would take several times their computation.
  static constexpr std::chrono::milliseconds kDurableWithin{1'000};

  /// `identity` says what is computed from what, {"format", "capture_hash", "options"}; `capture`
  /// is the capture's name, for messages. Throws what OutputFile's constructor and
  /// take_up_interrupted() throw; Error(file) where `resume` finds an OUT.part of another identity,
  /// or one that is no such list.
  StatsJournal(std::filesystem::path out, nlohmann::ordered_json identity, std::string capture,
               const OutputFileOptions& options);

  /// Records of earlier runs. A line that is none ends the list: it was not written to its end.
  const std::vector<HeadRecord>& kept() const { return kept_; }
  const std::filesystem::path& part_path() const { return file_.part_path(); }
  /// Adds a record, which holds from then on whatever ends the process, and is durable within
  /// kDurableWithin. Throws Error(file) where the sources of `options` were changed, or earlier
  /// records cannot be made durable.
  void append(const HeadRecord& record);
  /// Returns when all records are durable. Throws Error(file) where that fails.
  void flush();
  /// `write` creates the output's final form at the path that it is given; it then takes the name
  /// OUT. Until it has it, OUT.part is as it was.
  void finish(const std::function<void(const std::filesystem::path&)>& write);

 private:
  void load();
  void write_line(const nlohmann::ordered_json& json);

  nlohmann::ordered_json identity_;
  OutputFile file_;
  std::vector<HeadRecord> kept_;
  int64_t size_ = 0;
  std::optional<GroupSync> sync_;  ///< of file_, while the list grows
};

}  // namespace attnscope
