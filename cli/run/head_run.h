#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/common/console.h"
#include "cli/run/head_run_options.h"
#include "cli/run/head_where.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_steps.h"
#include "cli/run/team_run.h"
#include "cluster/team.h"
#include "core/base/memory_budget.h"
#include "core/base/plan_share.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"

namespace attnscope {

/// What a run does before its work, and a dry run alone.
struct HeadRunPlan {
  /// Of the first process: throws where the output cannot be written. Null: choose() looked.
  std::function<void()> check_output;
  /// Of a dry run with --resume, where there is something to go on with: throws where it is of
  /// another run. All processes call it.
  std::function<void()> check_resume;
  std::function<RunPlan()> plan;  ///< that the first process prints
};

/// A command's run over heads of a capture, as one of the processes that do it together, or alone.
/// run() has the order that all of them keep; a command adds how it chooses and what it does. One
/// thread's.
class HeadRun : public TeamWork {
 public:
  /// Borrows all. run() puts the share's name into `options.out`, and what this process has of its
  /// host's memory, cores and devices into `options.run`.
  HeadRun(HeadRunOptions& options, Team& team, const Console& console)
      : common_(options), team_(team), console_(console) {}

  int run() final;
  bool begun() const override { return false; }
  std::string left(int64_t) const override { return std::string(kNothingWritten); }
  void give_up() override {}

 protected:
  /// Throws Error(usage) where the options cannot be meant, whatever the capture.
  virtual void check_options() {}
  /// The numbers that --where compares.
  virtual StatsChoice choice_of_where() const { return {}; }
  /// False where work() reads no capture.
  virtual bool opens_capture() const { return true; }
  /// Calls of the selection, of the whole plan; throws Error(usage) where the command cannot be
  /// about them. There is no backend yet.
  virtual std::vector<SelectedCall> choose() { return select(); }
  /// Does all; of a dry run, says what it would take. Returns the exit code.
  virtual int work() = 0;
  /// Lets go of the output, once all processes know that it is there; before they leave.
  virtual void close() {}

  /// The selection; the first process warns of what it names and the capture lacks.
  std::vector<SelectedCall> select() const;
  const std::optional<PlanShare>& share() const { return share_; }
  const Capture& capture() const { return *capture_; }
  const std::vector<SelectedCall>& calls() const { return calls_; }
  /// The heads that --where holds for and whose numbers it compared.
  const HeadRecords& where_records() const { return where_.records; }
  /// Of a dry run: the heads that may hold, whose numbers --where would find.
  const std::set<HeadName>& where_supposed() const { return where_.supposed; }
  const TileBackend& backend() const { return *backend_; }
  /// Within --memory, beside the capture's calls.
  MemoryBudget& budget() { return *budget_; }
  /// Null where this process does all by itself.
  SharedWork* shared_work() const { return team_.is_alone() ? nullptr : &team_; }

  /// agree_on_run() of the options that all commands have, and of `own`.
  void agree(OrderedJson own);
  /// The plan of all, as the processes do it that share so many units.
  RunPlan shared_plan(RunPlan plan, int64_t units) const;
  /// Has the first process check the output; true of a dry run, which then ends with its plan.
  bool is_only_planned(const HeadRunPlan& plan) const;
  /// Checks the inputs of these tasks, which this process looks at, while signals request its stop
  /// until the run ends. Throws as CheckedRun does.
  const CheckedRun& check_inputs(std::span<const HeadTask> tasks, bool with_values = false);
  const CheckedRun& check_inputs(std::span<const ReductionJob> jobs);

  HeadRunOptions& common_;
  Team& team_;
  const Console& console_;

 private:
  void open();
  void make_checked_backend();
  void agree_on_selection();
  bool has_something_to_resume() const;

  std::optional<PlanShare> share_;
  std::optional<Capture> capture_;
  std::vector<SelectedCall> calls_;
  SettledWhere where_;
  RunBackend backend_;
  std::optional<MemoryBudget> budget_;
  std::optional<CheckedRun> checked_;
};

/// Does a HeadRun with a copy of the options: run_shared(). `more`: another output than -o, without
/// which several processes may go on alone.
template <typename Run, typename Options>
int run_heads(Options options, const std::string& more = "") {
  const Console console(options.quiet);
  return run_shared(options.shard, options.alone, options.out + more, console,
                    [&](Team& team, const Console& words) {
                      return std::make_unique<Run>(options, team, words);
                    });
}

}  // namespace attnscope
