#include "cli/run/head_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/common/command.h"
#include "cli/common/head_list.h"
#include "cli/common/unknown_state.h"
#include "cli/run/capture_check.h"
#include "cli/run/shard_option.h"
#include "cli/run/team_steps.h"
#include "core/base/error.h"
#include "io/files/leftovers.h"

namespace attnscope {

void add_head_run_options(CommandParser& command, HeadRunOptions& o) {
  add_selection_options(command, o.selection);
  add_run_options(command, o.run);
  add_shard_option(command, o.shard);
  add_alone_option(command, o.alone);
}

int HeadRun::run() {
  // Here, where a failure is on its way: after run_together() has caught it, the backend would
  // print the profile of a run that failed.
  const auto end_backend = [](RunBackend* backend) { backend->reset(); };
  const std::unique_ptr<RunBackend, decltype(end_backend)> ended(&backend_, end_backend);
  share_ = chosen_share(common_.shard, console_);
  common_.out = name_of_share(common_.out, share_);
  set_answer_out(common_.out);
  refuse_list_as_output(common_.selection.from, common_.out);
  check_options();
  if (opens_capture()) open();
  const int code = work();
  // Nobody ends before all is written.
  team_.exchange("");
  close();
  return code;
}

void HeadRun::open() {
  common_.run = share_of_host(common_.run, team_);
  capture_.emplace(open_capture(common_.capture, common_.run, console_));
  budget_.emplace(memory_beside(*capture_, common_.run));
  agree_on_selection();
  if (asks_for_numbers(common_.selection)) {
    make_checked_backend();
    where_ = settle_where(
        common_.selection, choice_of_where(),
        {*capture_, *backend_, *budget_, team_, console_, common_.run.threads, common_.dry_run});
  }
  calls_ = choose();
  if (!backend_) make_checked_backend();
  if (team_.is_first()) tell_unknown_state(calls_, console_);
}

/// With it what a capture records of itself is compared, before it is worked on.
void HeadRun::make_checked_backend() {
  backend_ = make_team_backend(common_.run, team_, console_);
  if (!team_.is_first()) return;
  check_capture(*capture_, common_.capture, *backend_, budget_->room(), console_);
}

/// Finding the heads of --where is work of all, which begins before the calls are known.
void HeadRun::agree_on_selection() {
  agree_on_run(team_, capture(), {},
               {{"selection", selection_json(common_.selection)},
                {"numbers of --where", choice_json(choice_of_where())},
                {"--cache", common_.selection.cache},
                {"--dry-run", common_.dry_run}});
}

std::vector<SelectedCall> HeadRun::select() const {
  std::vector<std::string> missing;
  std::vector<SelectedCall> calls = capture().select(parse_selection(common_.selection), &missing);
  for (const std::string& line : missing) {
    if (team_.is_first()) console_.warn("warning: " + line);
  }
  return calls;
}

void HeadRun::agree(OrderedJson own) {
  own.update(OrderedJson{{"-o", common_.out},
                         {"--json", common_.json},
                         {"--resume", common_.resume},
                         {"--force", common_.force},
                         {"--dry-run", common_.dry_run}});
  agree_on_run(team_, capture(), calls_, own);
}

RunPlan HeadRun::shared_plan(RunPlan plan, int64_t units) const {
  if (!team_.is_alone()) share_forecast(plan, team_, units);
  return plan;
}

/// True on all processes where the first one finds the output, or what is left of it.
bool HeadRun::has_something_to_resume() const {
  const auto is_there = [](const std::filesystem::path& file) {
    std::error_code none;
    return std::filesystem::exists(file, none);
  };
  bool found = false;
  if (common_.resume && !common_.out.empty() && team_.is_first()) {
    const auto left = leftover_names(common_.out);
    found = is_there(common_.out) || std::any_of(left.begin(), left.end(), is_there);
  }
  return !team_.exchange(found ? "found" : "").front().empty();
}

bool HeadRun::is_only_planned(const HeadRunPlan& plan) const {
  if (team_.is_first() && plan.check_output) plan.check_output();
  if (!common_.dry_run) return false;
  if (has_something_to_resume()) plan.check_resume();
  if (team_.is_first()) {
    RunPlan whole = plan.plan();
    whole.where = where_.plan;
    print_plan(whole, common_.json);
  }
  return true;
}

const CheckedRun& HeadRun::check_inputs(std::span<const HeadTask> tasks, bool with_values) {
  return checked_.emplace(console_, tasks, backend(), with_values);
}

const CheckedRun& HeadRun::check_inputs(std::span<const ReductionJob> jobs) {
  return checked_.emplace(console_, jobs, backend());
}

}  // namespace attnscope
