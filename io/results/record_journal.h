#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/files/group_sync.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/files/summed_lines.h"

namespace attnscope {

/// The beginning of a list of records: {"format": "attnscope-COMMAND-part/2"}, and the identity of
/// the run, {"capture_hash", "options"} and its part.
OrderedJson record_list_header(std::string_view command, const OrderedJson& identity);

/// How many records an interrupted run with this header left beside `out`; 0 where nothing is left,
/// or what is left is of another run. Throws Error(file) where a line of them is damaged.
int64_t records_left(const std::filesystem::path& out, const OrderedJson& header);
/// Removes what a run with this header left beside its complete `out`: it was killed when `out` had
/// just got its name. What is of another run stays. Throws Error(file).
void remove_records_left(const std::filesystem::path& out, const OrderedJson& header);

/// Throws what a RecordJournal with these arguments and `resume` would where an interrupted run of
/// something else left what is beside `out`, or a line of it is damaged; changes nothing.
void check_records_left(const std::filesystem::path& out, const OrderedJson& header,
                        const std::string& capture);

/// An output that is made of one record a head, and of all of them at the end. Until then OUT.part
/// is a list of lines with checksums (LineSums): what the run computes, then a record each, so that
/// whatever ends the run, finished heads are kept for `resume`. Where several processes do the run,
/// the first one has OUT.part, and each of the others a list of its own beside it
/// (io/files/rank_files.h), of the same form; `resume` joins what all of them left. Not
/// thread-safe.
class RecordJournal {
 public:
  /// The time whose work a loss of power may cost. Small heads are done by the hundred in that
  /// time: a sync for each would take several times their computation.
  static constexpr std::chrono::milliseconds kDurableWithin{1'000};
  /// Takes a record of an earlier run; false where it is none.
  using Take = std::function<bool(const OrderedJson& record)>;

  /// `header` as of record_list_header(); `capture` is the capture's name, for messages. With
  /// `resume`, `take` gets every record of earlier runs once. Throws what OutputFile's constructor
  /// and take_up_interrupted() throw; Error(file) where `resume` finds a list with another header,
  /// an OUT.part that is no such list, or a line that is not as it was written.
  RecordJournal(std::filesystem::path out, OrderedJson header, const std::string& capture,
                const OutputFileOptions& options, const Take& take);
  /// Of a run of several processes, the `rank`-th, from 1 on: `invitation` is the first one's
  /// invite(). Throws Error(file) where what the first one wrote is not to be seen from here.
  RecordJournal(const std::filesystem::path& out, const OrderedJson& header,
                const OutputFileOptions& options, const std::string& invitation, int rank);

  /// Records of earlier runs.
  int64_t kept() const { return kept_; }
  const std::filesystem::path& part_path() const { return file_->part_path(); }
  /// Of the first process: what the file system cannot do, for people to know.
  const std::vector<std::string>& warnings() const { return file_->warnings(); }
  /// Of the first process of several, before the first record: what the others need. From now on
  /// OUT.part stays for `resume`, whatever it holds.
  std::string invite();
  /// Adds a record, which holds from then on whatever ends the process, and is durable within
  /// kDurableWithin. Throws Error(file) where the sources of `options` were changed, or earlier
  /// records cannot be made durable.
  void append(const OrderedJson& record);
  /// Returns when all records are durable. Throws Error(file) where that fails.
  void flush();
  /// `write` creates the output's final form at the path that it is given; it then takes the name
  /// OUT. Until it has it, OUT.part is as it was. False: OUT was there already, with the same
  /// bytes, and OUT.part is gone. Throws Error(file) where OUT is there with others and is not to
  /// be replaced.
  bool finish(const std::function<void(const std::filesystem::path&)>& write);

 private:
  void load(const Take& take);
  void write_line(std::string_view text);
  void expect_same_bytes(const std::function<void(const std::filesystem::path&)>& write) const;
  const PosixFile& list() const { return file_ ? file_->data() : own_; }
  void begin_syncs(bool sync);

  OrderedJson header_;
  std::shared_ptr<const InputSet> sources_;
  bool replaces_ = false;           ///< OUT, where it is there
  std::optional<OutputFile> file_;  ///< of the first process
  PosixFile own_;                   ///< of another
  int64_t kept_ = 0;
  int64_t size_ = 0;
  LineSums sums_;                  ///< of the list
  std::optional<GroupSync> sync_;  ///< of the list, while it grows
};

}  // namespace attnscope
