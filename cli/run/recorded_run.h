#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/head_run.h"
#include "cli/run/team_records.h"
#include "cli/run/team_steps.h"
#include "core/problem/head_name.h"
#include "io/capture/selection_share.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"

namespace attnscope {

/// A run that finds a record of every head, as stats and mask do: it keeps them in a journal beside
/// its output, goes on with what an earlier run left, and writes all of them at its end.
class RecordedRun : public HeadRun {
 public:
  /// `product` names the command and its outputs: "stats", "mask".
  RecordedRun(std::string_view product, HeadRunOptions& options, Team& team, const Console& console)
      : HeadRun(options, team, console), product_(product) {}

  bool begun() const final { return found_.is_open(); }
  std::string left(int64_t kept) const final;
  void give_up() final;

 protected:
  int work() final;
  void close() final { found_.close(); }
  /// Throws where the run cannot be about the calls, before processes agree on it: the backend is
  /// there.
  virtual void check_plan() {}
  /// Options that decide the result, beside the capture's content.
  virtual OrderedJson result_options() const = 0;
  /// Those by which parts know that they belong together.
  virtual OrderedJson plan_options() const { return result_options(); }
  /// Leaves the heads of a share of the calls.
  virtual void keep_share(const SelectionShare& share) = 0;
  /// Heads of the run, in the order of their records.
  virtual std::vector<HeadTask> tasks() const = 0;
  /// Bytes of a head's record until it is written.
  virtual int64_t record_bytes() const = 0;
  /// Of all heads; a part may have none.
  virtual RunPlan forecast() = 0;
  /// Throws Error(resource) where a head does not fit the budget and forecast() would not say so.
  virtual void check_memory() {}
  /// Throws where the outputs cannot be written.
  virtual void check_output(const OutputFileOptions& file) = 0;
  /// Says what is about to happen.
  virtual void start() {}
  /// Checks more than sound tensors; `own`: what this process looks at.
  virtual void check(const CheckedRun& scope, std::span<const HeadTask> own) = 0;
  /// True where the result records its origin; to find that, the run reads all its tensors.
  virtual bool has_origin() const = 0;
  /// True where the outputs depend on v, too.
  virtual bool reads_values() const = 0;
  /// Files that are no output, beside the capture's.
  virtual std::vector<std::filesystem::path> inputs() const = 0;
  /// Takes a record of another run or process; place_of() its head, or nothing where it is none.
  virtual std::optional<int64_t> take(const OrderedJson& record) = 0;
  /// Finds the records of heads that are not found().there(), and adds them. Of a run that has
  /// heads.
  virtual void measure(const std::stop_token& stop) = 0;
  /// Once what was read is known to be unchanged.
  virtual void end_measuring() {}
  /// Of the first process, which now has all records and is about to write them.
  virtual void before_writing() {}
  virtual void write_file(const std::filesystem::path& path) = 0;
  /// "12 heads".
  virtual std::string written_text() const = 0;
  virtual OrderedJson result() const = 0;
  virtual void print_table() const = 0;

  /// forecast(), as all processes do it.
  RunPlan planned();
  std::optional<int64_t> place_of(const HeadName& name) const;
  TeamRecords& found() { return found_; }
  const OrderedJson& options() const { return options_; }
  const std::optional<SelectionShare>& part() const { return part_; }
  const CallDigests& digests() const { return digests_; }
  /// {"capture", "capture_hash", "options"}, and which part it is; empty without has_origin().
  const OrderedJson& origin() const { return origin_; }

 private:
  std::vector<HeadTask> agreed_tasks();
  OrderedJson find_origin(const std::stop_token& stop);
  void check_resume();
  bool is_there(const OrderedJson& identity);
  bool is_done(const OrderedJson& identity, const OutputFileOptions& file);
  void write();

  const std::string product_;
  OrderedJson options_;
  std::optional<SelectionShare> part_;
  CallDigests digests_;
  OrderedJson origin_ = OrderedJson::object();
  std::map<HeadName, int64_t> places_;  ///< of all heads of the run
  TeamRecords found_{team_, [this](const OrderedJson& json) { return take(json); }};
};

}  // namespace attnscope
