#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/memory_budget.h"
#include "io/files/group_sync.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/files/summed_lines.h"
#include "io/metrics/run_table.h"

namespace attnscope {

/// How the OUT.part of metrics of a running model begins, before the number of the format.
constexpr std::string_view kMetricList = R"({"format":"attnscope-metrics-part/)";

/// True of a file that begins as a journal of metrics does.
bool is_metric_journal(const std::filesystem::path& path);
/// The table of a journal: every line that was written to its end. Throws Error(file) where it is
/// none, or a line is not as it was written. (Those of older versions have no checksums.)
RunTable read_metric_journal(const std::filesystem::path& path);

/// A table that runs are added to. While a run is under way its heads are lines of OUT.part, each
/// of which holds from then on whatever ends the process, and is durable within a second; finish()
/// adds them to OUT, which is replaced in one step. What a process that was killed left in OUT.part
/// is kept and goes on. Not thread-safe.
class MetricJournal {
 public:
  /// `options` as RunTable's. `force`: OUT and OUT.part, whatever they are, are given up. Throws
  /// what OutputFile's constructor throws, and Error(file) where OUT is no table, its options or
  /// those of OUT.part are others, or OUT.part is damaged or an older version's.
  MetricJournal(std::filesystem::path out, OrderedJson options, bool force);
  MetricJournal(const MetricJournal&) = delete;
  MetricJournal& operator=(const MetricJournal&) = delete;
  /// Where nothing was measured, nothing is left.
  ~MetricJournal();

  /// The runs that are there.
  const std::vector<MetricRun>& runs() const { return known_.runs; }
  /// Lines that a user should read about what was found.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::filesystem::path& out() const { return file_.out(); }

  /// Begins a run; groups that follow are its. Gives the name that it has: unlike the others'.
  std::string begin(MetricRun run);
  /// Adds heads of the run, with values of one run. Throws Error(file) where they do not fit those
  /// of runs before it, or cannot be written.
  void append(const MetricGroup& group);
  /// Ends the run with what is known of it now, and puts all that OUT.part has into OUT: what both
  /// hold is in memory meanwhile, and counts in `budget`. Nothing where nothing was measured. On an
  /// Error all stays in OUT.part.
  void finish(const MetricRun& ended, MemoryBudget& budget);

 private:
  void take_up(bool force);
  void write_line(const OrderedJson& json);
  void know(const MetricGroup& group, const std::string& where);

  OrderedJson options_;
  OutputFile file_;
  RunTable known_;  ///< runs, and the shapes of their groups
  std::vector<std::string> notes_;
  std::optional<MetricRun> run_;
  int64_t size_ = 0;        ///< of OUT.part
  LineSums sums_;           ///< of its lines
  int64_t groups_ = 0;      ///< lines of groups in it
  bool has_table_ = false;  ///< OUT is there, and stays
  std::optional<GroupSync> sync_;
};

}  // namespace attnscope
