#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/console.h"
#include "cluster/team.h"
#include "io/files/json_types.h"
#include "io/results/record_journal.h"

namespace attnscope {

/// True where --resume finds the output of this very run of `command` ("stats", "mask") at `out`;
/// then says so and removes the files that a killed run left beside it. `identity` as of
/// is_complete_already(), `total` is the number of records of the run. A .csv does not say what it
/// was made of: false where all records of this run stand beside it, for finish() compares them;
/// otherwise it is an Error(file). Throws as is_complete_already().
/// Without `removes` nothing is removed.
bool is_recorded_already(const Console& console, const std::filesystem::path& out,
                         std::string_view command, const OrderedJson& identity, int64_t total,
                         bool removes = true);

/// The records of a run that is made of one a unit, as its processes find them: with an output in
/// journals, so that whatever ends the run they are kept, and at the end all of them on the first
/// process. One thread's.
class TeamRecords {
 public:
  /// Takes a record that this process did not find itself and says of which unit it is; nothing
  /// where it is none.
  using Take = std::function<std::optional<int64_t>(const OrderedJson& record)>;

  TeamRecords(Team& team, Take take) : team_(team), take_(std::move(take)) {}

  /// Every process's, an exchange; arguments as of RecordJournal, whose warnings `console` gets. On
  /// the first one `take` gets what earlier runs found.
  void open(const std::filesystem::path& out, const OrderedJson& header, const std::string& capture,
            const OutputFileOptions& options, const Console& console);
  bool is_open() const { return journal_.has_value(); }
  /// The units that earlier runs did, ascending.
  const std::vector<int64_t>& there() const { return there_; }

  /// One that this process found.
  void add(const OrderedJson& record);
  /// Returns when all of them are durable.
  void flush();
  /// Gives those of the other processes to the first one; an exchange.
  void collect();
  /// Of the first process: RecordJournal::finish().
  bool finish(const std::function<void(const std::filesystem::path&)>& write);
  /// Lets go of the output.
  void close() { journal_.reset(); }

 private:
  Team& team_;
  const Take take_;
  std::optional<RecordJournal> journal_;
  std::vector<int64_t> there_;
  std::string mine_;  ///< lines for the first process
};

}  // namespace attnscope
